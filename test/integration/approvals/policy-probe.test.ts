/** Whether the operator recognizes the answers of a real API server to dry runs that the admission policies must deny. */
import { expect, test } from "bun:test";
import { customResourceDefinitions, stackFinalizer } from "@pko/api";
import { quickstartObjects } from "@pko/install";
import {
  builtin,
  connect,
  logger,
  manualClock,
  metricsRegistry,
  requestTelemetry,
  type Client,
  type ConnectOptions,
} from "@pko/kube";
import { approvals, policyProbe, stacks } from "@pko/operator";
import { patience, startApiServer, waitFor, type ApiServer } from "@pko/testkit";

import { testTimeoutMs } from "../api/install.ts";

/** A policy of the quickstart manifest, with its binding. */
const policy = (name: string): object[] =>
  quickstartObjects().filter(
    (object) => "metadata" in object && (object.metadata as { name?: string } | undefined)?.name === name,
  );
const policies = {
  approvals: policy("approvals.auto.pulumi.com"),
  safeguards: policy("stack-safeguards.pulumi.com"),
};

async function apply(server: ApiServer, objects: readonly object[], verb: "apply" | "delete" = "apply"): Promise<void> {
  await server.kubectl([verb, "--filename", "-"], {
    input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }),
  });
}

/** The state after one check. */
async function checked(client: Client, namespace = "default"): Promise<string> {
  const clock = manualClock();
  const probe = policyProbe({ client, clock });
  const settled = Promise.withResolvers<void>();
  probe.follow("web", { namespace, name: "web", required: "Always", wake: () => settled.resolve() });
  await clock.advance(0);
  await settled.promise;
  const state = probe.state(namespace);
  return state.kind === "missing" ? `${state.kind}: ${state.policy}` : state.kind;
}

/** What the metrics and the log show about one check. */
async function reported(open: (options: ConnectOptions) => Promise<Client> | Client): Promise<object> {
  const metrics = metricsRegistry();
  const lines: string[] = [];
  const log = logger({ write: (line) => lines.push(line) });
  await checked(await open({ ...patience, onResponse: requestTelemetry({ log, metrics }) }));
  const codes = metrics.expose().matchAll(/^rest_client_requests_total\{code="(.*?)"/gm);
  return { codes: Array.from(codes, ([, code]) => code), lines };
}

async function stackIn(server: ApiServer, namespace: string): Promise<void> {
  const { apiVersion, kind } = stacks;
  const spec = { stack: "dev", programRef: { name: "program" }, approval: { required: "Always" as const } };
  const metadata = { name: "web", namespace, finalizers: [stackFinalizer] };
  await server.client.create(stacks, { apiVersion, kind, metadata, spec });
}

test(
  "the policies are missing, in force, or cannot be checked",
  async () => {
    const server = await startApiServer();
    const becomes = async (expected: string, namespace?: string): Promise<void> => {
      const isExpected = async () => (await checked(server.client, namespace)) === expected;
      await waitFor(isExpected, { timeoutMs: 30_000, what: expected });
    };
    try {
      await apply(server, [...customResourceDefinitions()]);
      const isServed = async (): Promise<boolean> =>
        await Promise.all([server.client.list(approvals), server.client.list(stacks)]).then(
          () => true,
          () => false,
        );
      await waitFor(isServed, { timeoutMs: 30_000, what: "Approvals and Stacks to be served" });
      await stackIn(server, "default");
      expect(await checked(server.client)).toBe("missing: approvals");
      expect(await checked(await server.clientFor({ name: "decidedBy" }))).toBe("unverified");
      await apply(server, policies.approvals);
      await becomes("missing: safeguards");
      await apply(server, policies.safeguards);
      await becomes("inForce");

      const { metadata } = await server.client.get(stacks, { namespace: "default", name: "web" });
      expect(metadata.annotations).toBeUndefined();
      // An alert reports requests that are rejected, and these denials are no problem.
      expect(await reported((options) => connect(server.credentials, options))).toEqual({ codes: [], lines: [] });
      const denied = await reported((options) => server.clientFor({ name: "decidedBy" }, options));
      expect(denied).toEqual({ codes: ["403"], lines: [expect.stringContaining("no role grants it")] });
      expect((await server.client.list(approvals)).items).toEqual([]);

      await server.client.create(builtin.namespaces, {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: { name: "old" },
      });
      await stackIn(server, "old");
      await server.client.delete(builtin.namespaces, { name: "old" });
      await becomes("namespaceTerminating", "old");

      await apply(server, policies.safeguards, "delete");
      await becomes("missing: safeguards");
    } finally {
      await server.stop();
    }
  },
  testTimeoutMs,
);
