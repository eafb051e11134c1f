/** Views of Updates for tests: `viewOf(workspaceReady, withFinalizer, startedIn("pod-a"), run(running({ created: 2 })))`. */
import { normalizeUpdate, type Condition, type Update, type UpdateSpec, type UpdateStatus } from "@pko/api";
import { timestamp } from "@pko/kube";
import { noProgress, type Progress } from "@pko/records";
import { type Output, type RunResult } from "@pko/rpc";

import type { Run } from "../../agents/agents.ts";
import { updates } from "../../kinds.ts";
import { updateFinalizer } from "../finalizer.ts";
import type { SiblingFacts, UpdateView, WorkspaceFacts } from "../view.ts";

/** The current time in every view. */
export const noon = Date.UTC(2030, 0, 1, 12);
export const at = (offsetMs: number): string => timestamp(noon + offsetMs);

export type ViewTrait = (view: UpdateView) => UpdateView;

const fresh: Update = {
  apiVersion: updates.apiVersion,
  kind: updates.kind,
  metadata: {
    name: "web-1",
    namespace: "default",
    // Its jitter is zero.
    uid: "update-uid-1206",
    resourceVersion: "7",
    generation: 1,
    creationTimestamp: at(-60_000),
  },
  spec: { workspaceName: "web", stackName: "dev", type: "up" },
};

export function viewOf(...traits: readonly ViewTrait[]): UpdateView {
  const bare: UpdateView = {
    now: noon,
    update: fresh,
    spec: normalizeUpdate(fresh),
    workspace: { state: "missing" },
    siblings: [],
    lostNodeAfterMs: 300_000,
    isCleared: true,
    slot: { kind: "held", forMs: 0, isWanted: false },
    lostRuns: [],
    approval: { approvals: [], least: "Never" },
    approvalPolicy: { kind: "inForce" },
  };
  const view = traits.reduce((known, trait) => trait(known), bare);
  return { ...view, spec: normalizeUpdate(view.update) };
}

function changed(change: (update: Update) => Update): ViewTrait {
  return (view) => ({ ...view, update: change(view.update) });
}

export const withSpec = (spec: UpdateSpec): ViewTrait =>
  changed((update) => ({ ...update, spec: { ...update.spec, ...spec } }));

export const withStatus = (status: UpdateStatus): ViewTrait =>
  changed((update) => ({ ...update, status: { ...update.status, ...status } }));

export const withFinalizer: ViewTrait = changed((update) => ({
  ...update,
  metadata: { ...update.metadata, finalizers: [...(update.metadata.finalizers ?? []), updateFinalizer] },
}));

export const createdAgo = (ms: number): ViewTrait =>
  changed((update) => ({ ...update, metadata: { ...update.metadata, creationTimestamp: at(-ms) } }));

export const deletedAgo = (ms: number): ViewTrait =>
  changed((update) => ({ ...update, metadata: { ...update.metadata, deletionTimestamp: at(-ms) } }));

const workspace = { namespace: "default", name: "web" };

export const workspaceIs =
  (facts: WorkspaceFacts): ViewTrait =>
  (view) => ({ ...view, workspace: facts });

/** The Update itself is a minute old. */
export const sibling =
  (
    name: string,
    { createdAgoMs = 120_000, ...facts }: Partial<SiblingFacts> & { createdAgoMs?: number } = {},
  ): ViewTrait =>
  (view) => ({
    ...view,
    siblings: [
      ...view.siblings,
      { name, createdAt: at(-createdAgoMs), hasStarted: false, isDeleting: false, canRun: true, ...facts },
    ],
  });

export const podIs =
  (uid: string, { ip = "10.0.0.1", isDeleting = false } = {}): ViewTrait =>
  (view) => ({ ...view, pod: { agent: { workspace, uid, restarts: 0, ip, port: 50_051 }, isDeleting } });

/** Its node has not responded for this long. */
export const podOverdue =
  (ms: number): ViewTrait =>
  (view) =>
    view.pod
      ? {
          ...view,
          pod: {
            ...view.pod,
            overdue: { namespace: "default", name: "web-workspace-0", node: "worker-2", since: noon - ms },
          },
        }
      : view;

export const noPod: ViewTrait = (view) => {
  const { pod: _, ...rest } = view;
  return rest;
};

/** With a pod whose agent can be reached. */
export const workspaceReady: ViewTrait = (view) =>
  podIs("pod-a")(workspaceIs({ state: "ready", address: { host: "10.0.0.1", port: 50_051 } })(view));

export const condition = (type: string, status: "True" | "False", reason: string): Condition => ({
  type,
  status,
  reason,
  message: "Unchanged.",
  lastTransitionTime: at(-30_000),
  observedGeneration: 1,
});

/** The pod has been recorded for half a minute. */
export const startedIn = (podUid: string): ViewTrait =>
  withStatus({
    startTime: at(-30_000),
    podUid,
    conditions: [
      condition("Progressing", "True", "Progressing"),
      condition("Failed", "False", "Progressing"),
      condition("Complete", "False", "Progressing"),
    ],
  });

export const completed = (endedAgoMs: number): ViewTrait =>
  withStatus({
    endTime: at(-endedAgoMs),
    conditions: [
      condition("Progressing", "False", "Complete"),
      condition("Failed", "False", "UpdateSucceeded"),
      condition("Complete", "True", "Updated"),
    ],
  });

export const run =
  (state: Run): ViewTrait =>
  (view) => ({ ...view, run: state });

export const running = (progress: Partial<Progress> = {}): Run => ({
  state: "running",
  progress: { ...noProgress, ...progress },
});

export const refused = (code: "unprepared" | "busy" | "notFound" | "other"): Run => ({
  state: "refused",
  code,
  message: `the agent responds ${code}`,
});

export const resultOf = (part: Partial<RunResult> = {}): RunResult => ({
  outcome: "succeeded",
  operation: "up",
  stack: "dev",
  revision: "abc",
  startedAt: at(-30_000),
  finishedAt: at(-1_000),
  progress: noProgress,
  changes: { create: 2, same: 1 },
  output: { tail: "", bytes: 0, truncated: false },
  ...part,
});

export const finished = (part: Partial<RunResult> = {}, outputs: readonly Output[] = []): Run => ({
  state: "finished",
  result: resultOf(part),
  outputs,
});

export const output = (name: string, value: unknown, secret = false): Output => ({ name, value, secret, known: true });
