/** `why` finds the root cause of broken Stacks, whose statuses have the operator's own texts. */
import { missingObject, missingSource, suspendAnnotation, type LastUpdate, type StackStatus } from "@pko/api";
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { conflictMessage } from "../../../packages/operator/src/shared/objects/ownership.ts";
import { lostNodeMessage } from "../../../packages/operator/src/shared/pods/lost-node.ts";
import * as messages from "../../../packages/operator/src/stack/messages.ts";
import * as workspaceMessages from "../../../packages/operator/src/workspace/messages.ts";
import { explainPod } from "../../../packages/operator/src/workspace/pod/explain-pod.ts";
import { ahead, ago, ready, reconciling, stalled, CliStage, testTimeoutMs } from "./harness.ts";

setDefaultTimeout(testTimeoutMs);

interface Explanation {
  readonly cause: string;
  readonly stack: string;
  readonly summary: string;
  readonly message?: string;
  readonly path: readonly string[];
  readonly next: readonly string[];
}

/** Explains Stack `web`. */
async function explain(arrange: (stage: CliStage) => Promise<void>): Promise<Explanation> {
  await using stage = await CliStage.set();
  await arrange(stage);
  const { out, err, code } = await stage.cli(["why", "web", "-o", "json"]);
  expect({ err, code }).toEqual({ err: "", code: 0 });
  return JSON.parse(out) as Explanation;
}

const failed = (change: Partial<LastUpdate>): LastUpdate => ({
  name: "web-0a1b2c3d4e5f",
  type: "up",
  state: "failed",
  failures: 1,
  lastResyncTime: ago(30),
  message: "error: no such bucket",
  ...change,
});

const next = { what: messages.retry, time: ahead(60) };

/** Stack `web` whose last update failed. */
const retrying = (change: Partial<LastUpdate>): StackStatus => {
  const last = failed(change);
  return reconciling("RetryingAfterFailure", messages.failed(last), { lastUpdate: last, next });
};

const workspaceFailed = (message: string): StackStatus =>
  stalled("WorkspaceFailed", messages.workspaceFailed("web", message), { next });

const container = { name: "pulumi", image: "example.com/workspace:1", ready: false, restartCount: 3, imageID: "" };
const pullProblem = {
  ...container,
  state: { waiting: { reason: "ImagePullBackOff", message: "Back-off pulling image" } },
};
const crash = {
  ...container,
  state: { waiting: { reason: "CrashLoopBackOff", message: "back-off 40s restarting failed container" } },
  lastState: { terminated: { exitCode: 137, reason: "OOMKilled" } },
};
const unschedulable = {
  type: "PodScheduled",
  status: "False",
  reason: "Unschedulable",
  message: "0/3 nodes are available: 3 Insufficient memory.",
} as const;

type Situation = readonly [sentence: string, cause: string, arrange: (stage: CliStage) => Promise<void>, text: string];

/** Stack `web` with this status, and nothing else. */
const web =
  (status: StackStatus) =>
  async (stage: CliStage): Promise<void> =>
    await stage.stack("web", {}, status);

const situations: readonly Situation[] = [
  ["a Stack that is up to date", "upToDate", web(ready()), "up to date"],
  [
    "a Stack that no operator has processed",
    "notObserved",
    async (stage) => await stage.stack("web"),
    "has not processed",
  ],
  [
    "an operator that does not run",
    "operatorDown",
    async (stage) => {
      await stage.lease({ renewedAgoMs: 600_000 });
      await stage.stack("web", {}, ready());
    },
    "last renewed its Lease 10m",
  ],
  [
    "an operator that is suspended",
    "operatorSuspended",
    async (stage) => {
      await stage.lease({ renewedAgoMs: 1000, annotations: { [suspendAnnotation]: "maintenance" } });
      await stage.stack("web", {}, reconciling("Suspended", "The Stack is suspended."));
    },
    "operator is suspended",
  ],
  [
    "a suspended Stack",
    "suspended",
    web(reconciling("Suspended", "The Stack is suspended, because spec.suspend is true: nothing starts.")),
    "suspended",
  ],
  [
    "a Secret that does not exist",
    "inputMissing",
    web(
      stalled(
        "SpecInvalid",
        messages.missingInputs([messages.inputMissing({ kind: "secret", name: "token", user: "the variable TOKEN" })]),
      ),
    ),
    "there is no Secret token",
  ],
  [
    "a ConfigMap without a key",
    "inputMissing",
    web(
      stalled(
        "SpecInvalid",
        messages.missingInputs([
          messages.inputKeyMissing({
            kind: "configMap",
            name: "sizes",
            key: "size",
            user: "the configuration value web:size",
          }),
        ]),
      ),
    ),
    "has no key size",
  ],
  [
    "an invalid spec",
    "specInvalid",
    web(stalled("SpecInvalid", "spec.branch: is not valid; set a branch")),
    "spec.branch",
  ],
  [
    "Stacks that depend on each other",
    "dependencyCycle",
    web(stalled("SpecInvalid", messages.dependencyCycle(["web", "api", "web"]))),
    "web → api → web",
  ],
  [
    "a Git server that rejects the credentials",
    "sourceUnavailable",
    web(
      stalled(
        "SourceUnavailable",
        messages.repositoryFailed("https://host/web.git", "the Git server rejects the credentials"),
        { next },
      ),
    ),
    "rejects the credentials",
  ],
  [
    "a prerequisite, three levels deep, whose Secret is missing",
    "inputMissing",
    async (stage) => {
      const waits = (name: string): StackStatus =>
        reconciling("PrerequisiteNotSatisfied", messages.prerequisitesUnmet([messages.prerequisiteNotDeployed(name)]));
      await stage.stack("web", { prerequisites: [{ name: "api" }] }, waits("api"));
      await stage.stack("api", { prerequisites: [{ name: "healthy" }, { name: "db" }] }, waits("db"));
      await stage.stack("healthy", {}, ready());
      await stage.stack("db", { prerequisites: [{ name: "network" }] }, waits("network"));
      const missing = messages.inputMissing({ kind: "secret", name: "aws", user: "the variable AWS_KEY" });
      await stage.stack("network", {}, stalled("SpecInvalid", messages.missingInputs([missing])));
    },
    "there is no Secret aws",
  ],
  [
    "a prerequisite that does not exist",
    "stackMissing",
    async (stage) => {
      const message = messages.prerequisitesUnmet([messages.prerequisiteMissing("db")]);
      await stage.stack("web", { prerequisites: [{ name: "db" }] }, reconciling("PrerequisiteNotSatisfied", message));
    },
    "no Stack db",
  ],
  [
    "an output that another Stack does not have",
    "outputMissing",
    async (stage) => {
      const envRefs = { URL: { type: "StackOutput", stack: "db", output: "url" } };
      const message = messages.prerequisitesUnmet([messages.outputMissing("db", "url", ["host"])]);
      await stage.stack("web", { envRefs }, reconciling("PrerequisiteNotSatisfied", message));
      await stage.stack("db", {}, ready());
    },
    "Stack db has no output url: it has host",
  ],
  [
    "a lock of another update",
    "locked",
    web(
      stalled("UpdateConflict", messages.failedByConflict(failed({ failure: "conflict" })), {
        lastUpdate: failed({ failure: "conflict" }),
        next,
      }),
    ),
    "another update",
  ],
  [
    "a quota that does not allow the Workspace",
    "quotaExceeded",
    web(stalled("WorkspaceFailed", messages.writeRejected('workspaces "web" is forbidden: exceeded quota: none'))),
    "exceeded quota",
  ],
  [
    "a policy that rejects the pod",
    "podRejected",
    web(workspaceFailed(workspaceMessages.podRejected("denied by webhook"))),
    "denied by webhook",
  ],
  [
    "a service account that does not exist",
    "serviceAccountMissing",
    web(
      workspaceFailed(
        workspaceMessages.podRejected(
          'pods "web-workspace-0" is forbidden: error looking up service account shop/ci: serviceaccount "ci" not found',
        ),
      ),
    ),
    "kubectl create serviceaccount ci -n ",
  ],
  [
    "a Program that does not exist",
    "sourceUnavailable",
    web(stalled("SourceUnavailable", missingSource("Program web"), { next })),
    "Create the object that the message names",
  ],
  [
    "a Secret with Git credentials that does not exist",
    "inputMissing",
    web(stalled("SourceUnavailable", missingObject("Secret git", "Git authentication"), { next })),
    "Create the object, or add the key",
  ],
  [
    "a pod that the API server rejects, as the StatefulSet reports it",
    "podRejected",
    web(workspaceFailed('pods "web-workspace-0" is forbidden: no PriorityClass with name high was found')),
    "Change what the message names in workspaceTemplate",
  ],
  [
    "a Pulumi stack that the agent may not create",
    "stackNotFound",
    web(
      workspaceFailed(
        "the stack dev cannot be selected: the stack does not exist; create it, or remove useLocalStackOnly",
      ),
    ),
    "correct spec.stack",
  ],
  [
    "a pod that no node can take, as its status shows before the operator reports it",
    "podUnschedulable",
    async (stage) => {
      await stage.stack(
        "web",
        {},
        reconciling("StackProcessing", messages.workspacePreparing("web", "the first update")),
      );
      await stage.pod("web", { phase: "Pending", conditions: [unschedulable] });
    },
    "Insufficient memory",
  ],
  [
    "an image that cannot be pulled, as the operator reports it",
    "imageNotPulled",
    web(workspaceFailed(explainPod({ status: { containerStatuses: [pullProblem] } }).message)),
    "cannot be pulled",
  ],
  [
    "a container that crashes",
    "podCrashing",
    async (stage) => {
      await stage.stack("web", {}, workspaceFailed(explainPod({ status: { containerStatuses: [crash] } }).message));
      await stage.pod("web", { phase: "Running", containerStatuses: [crash] });
    },
    "OOMKilled",
  ],
  [
    "an agent that does not respond",
    "agentUnreachable",
    web(workspaceFailed(workspaceMessages.agentUnreachable("connection refused"))),
    "does not respond",
  ],
  [
    "dependencies that cannot be installed",
    "installationFailed",
    async (stage) => {
      await stage.stack("web", {}, workspaceFailed("pulumi install failed: npm 404"));
      await stage.workspace("web", "InstallationFailed", "pulumi install failed: npm 404");
    },
    "npm 404",
  ],
  ["a workspace that cannot be prepared", "workspaceFailed", web(workspaceFailed("no backend")), "no backend"],
  [
    "two WorkspaceClasses",
    "classConflict",
    web(stalled("WorkspaceClassConflict", messages.classConflict("team", ["a", "b"]))),
    "The WorkspaceClasses a and b all select",
  ],
  [
    "a pod that exceeds a limit of its class",
    "classLimitExceeded",
    web(stalled("WorkspaceClassLimitExceeded", "the class allows 1Gi")),
    "allows 1Gi",
  ],
  ["a Pulumi CLI that is too old", "versionTooLow", web(stalled("PulumiVersionTooLow", "needs v3.200.0")), "v3.200.0"],
  [
    "credentials that the backend rejects",
    "credentialsRejected",
    web(retrying({ failure: "invalidToken", message: "error: invalid access token" })),
    "invalid access token",
  ],
  [
    "a failed program, several times",
    "programError",
    web(
      stalled("UpdateFailed", messages.failed(failed({ failure: "programError", failures: 3 })), {
        lastUpdate: failed({ failure: "programError", failures: 3 }),
        next,
      }),
    ),
    "no such bucket",
  ],
  [
    "a failed policy",
    "policyViolation",
    web(retrying({ failure: "policyViolation", message: "[mandatory] no-public-buckets" })),
    "no-public-buckets",
  ],
  [
    "pending operations",
    "pendingOperations",
    web(retrying({ failure: "pendingOperations", message: "the stack has pending operations" })),
    "pending operations",
  ],
  ["a timeout", "timedOut", web(retrying({ failure: "timedOut", message: "it ran for 600 s" })), "600 s"],
  [
    "an approval that is missing",
    "awaitingApproval",
    web(
      reconciling("AwaitingApproval", "The changes must be approved", {
        approval: {
          state: "Pending",
          updateName: "web-plan",
          updateUid: "uid",
          digest: "sha256:1",
          trigger: "{}",
          summary: "1 to delete\ndelete   aws:s3:Bucket logs",
          expiresAt: ahead(3600),
        },
      }),
    ),
    "delete   aws:s3:Bucket logs",
  ],
  ["a rejected plan", "approvalRejected", web(stalled("ApprovalRejected", "rejected by alice: too late")), "too late"],
  [
    "approvals without a policy",
    "approvalPolicyMissing",
    web(stalled("ApprovalPolicyMissing", "is missing")),
    "missing",
  ],
  [
    "a closed update window",
    "outsideUpdateWindow",
    web(
      reconciling("OutsideUpdateWindow", "no update window is open", {
        next: { what: "the update", time: ahead(3600) },
      }),
    ),
    "The next window opens at",
  ],
  [
    "a lost node",
    "nodeLost",
    web(
      stalled(
        "NodeLost",
        lostNodeMessage(
          { namespace: "n", name: "web-workspace-0", node: "worker-2", since: Date.now() },
          "it is unknown",
        ),
      ),
    ),
    "worker-2",
  ],
  [
    "a name that is taken",
    "ownershipConflict",
    web(
      stalled(
        "OwnershipConflict",
        conflictMessage([{ kind: "foreign", occupant: { kind: "Workspace", namespace: "n", name: "web" } }], {
          kind: "Stack",
          name: "web",
        }),
      ),
    ),
    "Workspace n/web (without an owner) already exists",
  ],
  ["a protected Stack", "protected", web(stalled("Protected", "it is protected")), "protected"],
  [
    "a namespace that is being deleted",
    "namespaceTerminating",
    web(stalled("NamespaceTerminating", messages.namespaceTerminating)),
    "being deleted",
  ],
  ["lost outputs", "outputsLost", web(stalled("OutputsLost", "its outputs were not stored")), "not stored"],
  [
    "an update that runs",
    "updateRunning",
    async (stage) => {
      const name = "web-0a1b2c3d4e5f";
      await stage.stack("web", {}, reconciling("StackProcessing", "is running", { currentUpdate: { name } }));
      await stage.update(name, "web", { status: { startTime: ago(90) } });
    },
    "The up of Stack web is running, started ",
  ],
];

describe("why explains", () => {
  for (const [sentence, cause, arrange, text] of situations) {
    test.concurrent(sentence, async () => {
      const explained = await explain(arrange);
      expect(explained.cause).toBe(cause);
      expect(JSON.stringify(explained)).toContain(text);
    });
  }
});

test("the path leads from the Stack to the one that has the cause", async () => {
  const [, , arrange] = situations.find(([sentence]) => sentence.startsWith("a prerequisite, three levels")) ?? [];
  if (!arrange) throw new Error("the situation is missing");
  const { path, stack } = await explain(arrange);
  expect(path).toEqual(["web", "api", "db", "network"]);
  expect(stack).toBe("network");
});
