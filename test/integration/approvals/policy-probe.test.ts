/** Whether the operator recognizes the answers of a real API server to an Approval in the name of another user. */
import { expect, test } from "bun:test";
import { approvalKind, autoGroup, customResourceDefinitions } from "@pko/api";
import { manualClock, type Client } from "@pko/kube";
import { approvals, policyProbe } from "@pko/operator";
import { startApiServer, waitFor, type ApiServer } from "@pko/testkit";

import { testTimeoutMs } from "../api/install.ts";

const apiVersion = "admissionregistration.k8s.io/v1";
const name = "approvals.test";

const policy = [
  {
    apiVersion,
    kind: "ValidatingAdmissionPolicy",
    metadata: { name },
    spec: {
      failurePolicy: "Fail",
      matchConstraints: {
        resourceRules: [
          { apiGroups: [autoGroup], apiVersions: ["*"], operations: ["CREATE"], resources: [approvalKind.plural] },
        ],
      },
      validations: [
        {
          expression: "object.spec.decidedBy == request.userInfo.username",
          message: "spec.decidedBy: must be the name of the user who creates the Approval",
        },
      ],
    },
  },
  {
    apiVersion,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: { name },
    spec: { policyName: name, validationActions: ["Deny"] },
  },
];

async function apply(server: ApiServer, objects: readonly object[]): Promise<void> {
  await server.kubectl(["apply", "--filename", "-"], {
    input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }),
  });
}

/** The state after one check. */
async function checked(client: Client): Promise<string> {
  const clock = manualClock();
  const probe = policyProbe({ client, clock });
  const settled = Promise.withResolvers<void>();
  probe.follow("web", { namespace: "default", wake: () => settled.resolve() });
  await clock.advance(0);
  await settled.promise;
  return probe.state("default").kind;
}

test(
  "the policy is missing, in force, or cannot be checked",
  async () => {
    const server = await startApiServer();
    try {
      await apply(
        server,
        customResourceDefinitions().filter(({ metadata }) => metadata.name.startsWith(`${approvalKind.plural}.`)),
      );
      const isServed = async (): Promise<boolean> =>
        await server.client.list(approvals, { namespace: "default" }).then(
          () => true,
          () => false,
        );
      await waitFor(isServed, { timeoutMs: 30_000, what: "Approvals to be served" });
      expect(await checked(server.client)).toBe("missing");
      expect(await checked(await server.clientFor({ name: "decidedBy" }))).toBe("unverified");
      await apply(server, policy);
      await waitFor(async () => (await checked(server.client)) === "inForce", {
        timeoutMs: 30_000,
        what: "the policy to be in force",
      });
      // Nothing of the checks is stored.
      expect((await server.client.list(approvals)).items).toEqual([]);
    } finally {
      await server.stop();
    }
  },
  testTimeoutMs,
);
