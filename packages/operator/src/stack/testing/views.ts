/** For tests: views of a Stack, and tables of plans. */
import {
  cancellationRequestAnnotation,
  driftRequestAnnotation,
  normalizeStack,
  reconcileRequestAnnotation,
  stackFinalizer,
  type LastUpdate,
  type Stack,
  type StackDrift,
  type StackSpec,
  type StackStatus,
  type Workspace,
} from "@pko/api";
import { timestamp } from "@pko/kube";
import { describe, expect, test } from "bun:test";

import { leastApproval, noClass } from "../../shared/workspace-classes.ts";
import { stacks } from "../../kinds.ts";
import type { SourceView } from "../../sources/source-view.ts";
import { workspaceObject, type WorkspaceOrigin } from "../desired/workspace.ts";
import type { Trigger } from "../history/trigger.ts";
import { planStack } from "../rules/index.ts";
import { stackStatus } from "../status.ts";
import type { PrerequisiteView, StackOutputView, StackView, UpdateFacts, WorkspaceFacts } from "../view.ts";

export const now = Date.UTC(2030, 0, 1, 12);
export const ago = (seconds: number): string => timestamp(now - seconds * 1000);

export interface Setting {
  readonly spec?: Partial<StackSpec>;
  readonly status?: StackStatus;
  /** `succeeded()` is the result of an update for the current spec, source and inputs. */
  readonly last?: LastUpdate;
  readonly generation?: number;
  readonly request?: string;
  readonly driftRequest?: string;
  /** The last drift check. */
  readonly drift?: StackDrift;
  /** The Update that the cancellation request names. */
  readonly cancelled?: string;
  readonly deleting?: boolean;
  /** How many seconds ago, if it is being deleted; 60 if absent. */
  readonly deletedAgo?: number;
  readonly finalizer?: boolean;
  readonly source?: SourceView;
  /** Ready with the wanted spec if absent. */
  readonly workspace?:
    | "absent"
    | "other"
    | "preparing"
    | "unseen"
    | "deleting"
    | "foreign"
    | { failed: string }
    | { warning: string }
    | { unchangedSince: string };
  /** From which the Workspace was created; the source if absent. */
  readonly origin?: WorkspaceOrigin;
  readonly updates?: readonly UpdateFacts[];
  readonly dependents?: StackView["dependents"];
  readonly unreported?: readonly string[];
  readonly cycle?: readonly string[];
  readonly prerequisites?: readonly PrerequisiteView[];
  readonly stackOutputs?: readonly StackOutputView[];
  readonly configInputs?: StackView["configInputs"];
  /** None if absent. */
  readonly missing?: readonly string[] | "unchecked";
  readonly outputs?: StackView["outputs"];
  /** Whether all Stacks are suspended. */
  readonly operatorSuspended?: boolean;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly approvals?: StackView["approvals"];
  /** Held if absent. */
  readonly slot?: StackView["slot"];
  /** In force if absent. */
  readonly approvalPolicy?: StackView["approvalPolicy"];
  /** None if absent. */
  readonly workspaceClass?: StackView["workspaceClass"];
}

const revision = "1";
const readySource: SourceView = {
  kind: "ready",
  revision,
  aliases: [],
  spec: { program: { name: "program", generation: 1 } },
};

export const succeeded = (changes: Partial<LastUpdate> = {}): LastUpdate => ({
  name: "web-last",
  type: "up",
  state: "succeeded",
  generation: 1,
  lastAttemptedCommit: revision,
  lastSuccessfulCommit: revision,
  lastResyncTime: ago(3600),
  failures: 0,
  ...changes,
});

export const failed = (changes: Partial<LastUpdate> = {}): LastUpdate => {
  const { lastSuccessfulCommit: _, ...rest } = succeeded();
  return {
    ...rest,
    state: "failed",
    failures: 1,
    message: "error: no such bucket",
    lastResyncTime: ago(5),
    ...changes,
  };
};

export const anUpdate = (changes: Partial<UpdateFacts> = {}): UpdateFacts => ({
  name: "web-now",
  uid: "uid-of-now",
  deleting: false,
  type: "up",
  isDriftCheck: false,
  refreshes: false,
  state: "unfinished",
  hasFinalizer: true,
  finalizers: [stackFinalizer],
  resourceVersion: "1",
  createdAt: now - 60_000,
  trigger: aTrigger(),
  report: {},
  mayHaveLeftLock: false,
  isPlan: false,
  ...changes,
});

export const aTrigger = (changes: Partial<Trigger> = {}): Trigger => ({
  type: "up",
  generation: 1,
  revision,
  reconcileRequest: "",
  inputs: "",
  ...changes,
});

export const prerequisite = (changes: Partial<PrerequisiteView> = {}): PrerequisiteView => ({
  name: "base",
  uid: "uid-of-base",
  state: "present",
  last: "deployed",
  isCurrent: true,
  endedAt: now - 600_000,
  reconcileRequest: "",
  ...changes,
});

export function stackOf(setting: Setting): Stack {
  const { generation = 1, deleting = false, finalizer = true, request, driftRequest, cancelled } = setting;
  const annotations = {
    ...setting.annotations,
    ...(request !== undefined && { [reconcileRequestAnnotation]: request }),
    ...(driftRequest !== undefined && { [driftRequestAnnotation]: driftRequest }),
    ...(cancelled !== undefined && { [cancellationRequestAnnotation]: cancelled }),
  };
  const status = setting.last ? statusAfter(setting.last, setting) : setting.status;
  return {
    apiVersion: stacks.apiVersion,
    kind: stacks.kind,
    metadata: {
      name: "web",
      namespace: "default",
      // Its jitter is zero.
      uid: "uid-of-web-3833",
      resourceVersion: "7",
      generation,
      creationTimestamp: ago(7200),
      ...(deleting && { deletionTimestamp: ago(setting.deletedAgo ?? 60) }),
      ...(finalizer && { finalizers: [stackFinalizer] }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: { stack: "dev", ...sourceFields(setting.spec), ...setting.spec },
    ...(status && { status }),
  };
}

const sourceFields = (spec: Partial<StackSpec> = {}): Partial<StackSpec> =>
  spec.projectRepo || spec.fluxSource || spec.workspaceTemplate?.spec?.local ? {} : { programRef: { name: "program" } };

function statusAfter(last: LastUpdate, { generation = 1, drift, status }: Setting): StackStatus {
  const ready = readyStatus(generation);
  const drifted = { type: "Drifted", message: "As before.", lastTransitionTime: ago(3600) };
  const verdict = drift?.resources.length
    ? { status: "True" as const, reason: "DriftDetected" }
    : { status: "False" as const, reason: "NoDrift" };
  const conditions = [...(ready.conditions ?? []), ...(drift ? [{ ...drifted, ...verdict }] : [])];
  return { ...ready, conditions, lastUpdate: last, ...(drift && { drift }), ...status };
}

const readyStatus = (generation: number): StackStatus => ({
  observedGeneration: generation,
  conditions: [
    {
      type: "Ready",
      status: "True",
      reason: "ProcessingCompleted",
      message: "The last update succeeded.",
      lastTransitionTime: ago(3600),
      observedGeneration: generation,
    },
  ],
});

export function viewOf(setting: Setting): StackView {
  const stack = stackOf(setting);
  const workspaceClass = setting.workspaceClass ?? noClass;
  const spec = normalizeStack(stack, { leastApproval: leastApproval(workspaceClass) });
  const { source = readySource } = setting;
  return {
    now,
    stack,
    spec,
    updates: setting.updates ?? [],
    orphans: [],
    operatorSuspended: setting.operatorSuspended ?? false,
    workspace: workspaceOf(setting, stack),
    source,
    ...othersOf(setting),
    prerequisites: setting.prerequisites ?? [],
    stackOutputs: setting.stackOutputs ?? [],
    configInputs: setting.configInputs ?? [],
    configObjects: [],
    readObjects: new Map(),
    ...(setting.missing !== "unchecked" && { missingInputs: setting.missing ?? [] }),
    outputs: setting.outputs ?? { kind: "none" },
    approvals: setting.approvals ?? [],
    approvalPolicy: setting.approvalPolicy ?? { kind: "inForce" },
    slot: setting.slot ?? { kind: "held", forMs: 0, isWanted: false },
    workspaceClass,
  };
}

const othersOf = ({ dependents = [], unreported = [], cycle = [] }: Setting) => ({ dependents, unreported, cycle });

const foreignWorkspace: WorkspaceFacts = {
  kind: "foreign",
  occupant: { kind: "Workspace", namespace: "default", name: "web", owner: { kind: "Stack", name: "other" } },
};

function workspaceOf({ workspace, origin, source = readySource }: Setting, stack: Stack): WorkspaceFacts {
  if (workspace === "absent" || workspace === "deleting") return { kind: workspace };
  if (workspace === "foreign") return foreignWorkspace;
  const normal = normalizeStack(stack);
  if (!normal.ok) return { kind: "absent" };
  const from = origin ?? (source.kind === "ready" ? source.spec : {});
  const wanted = workspaceObject(stack, normal.value, {
    origin: workspace === "other" ? { git: { url: "https://a/b", ref: "x" } } : from,
  });
  const object: Workspace = { ...wanted, metadata: { ...wanted.metadata, uid: "uid-of-workspace", generation: 1 } };
  return { kind: "present", object, state: workspaceState(workspace) };
}

function workspaceState(workspace: Setting["workspace"]): Extract<WorkspaceFacts, { kind: "present" }>["state"] {
  if (typeof workspace === "object") {
    if (!("failed" in workspace)) return { kind: "ready", ...workspace };
    return { kind: "failed", reason: workspace.failed, message: "npm: 404" };
  }
  if (workspace === "preparing" || workspace === "unseen") return { kind: "preparing", message: "installing." };
  return { kind: "ready" };
}

/** Without the finalizer of Updates whose result is recorded. */
function afterFinalizers(view: StackView): StackView {
  const [step] = planStack(view).steps;
  if (step?.kind !== "removeUpdateFinalizers") return view;
  const names = new Set(step.updates.map(({ name }) => name));
  const updates = view.updates.map((update) =>
    names.has(update.name) ? { ...update, hasFinalizer: false, finalizers: [] } : update,
  );
  return { ...view, updates };
}

/** A plan in a line: its steps, and the condition that users see. */
export function summary(setting: Setting): string {
  const observed = viewOf(setting);
  const view = afterFinalizers(observed);
  const { steps, outcome } = planStack(view);
  const first = view === observed ? [] : ["removeUpdateFinalizers"];
  const names = steps.map((step) =>
    step.kind === "createUpdate" ? `create ${step.trigger.type} for ${step.reason}` : step.kind,
  );
  const what = [...first, ...(names.length > 0 ? names : ["none"])].join(", ");
  if (outcome.kind === "unchanged") return `${what}: unchanged`;
  const conditions = stackStatus(view, { steps, outcome }).conditions ?? [];
  const shown = conditions.find(({ type }) => type === "Reconciling" || type === "Stalled") ?? conditions[0];
  return `${what}: ${shown?.type === "Ready" ? "Ready" : (shown?.reason ?? "?")}`;
}

type Case = readonly [sentence: string, setting: Setting, summary: string];

export function cases(title: string, table: readonly Case[]): void {
  describe(title, () => {
    for (const [sentence, setting, plan] of table) test(sentence, () => expect(summary(setting)).toBe(plan));
  });
}

export const creating = (what: string): string => `create ${what}: StackProcessing`;

/** Of the condition Ready. */
export function messageFor(setting: Setting): string {
  const view = viewOf(setting);
  return stackStatus(view, planStack(view)).conditions?.[0]?.message ?? "";
}

export const git = { projectRepo: "https://host/repo.git", branch: "main" };

export const program = (
  generation: number,
  aliases: readonly string[] = [],
): Extract<SourceView, { kind: "ready" }> => ({
  kind: "ready",
  revision: String(generation),
  aliases,
  spec: { program: { name: "program", generation } },
});

export const withOutput = (): NonNullable<Setting["spec"]> => ({
  envRefs: { URL: { type: "StackOutput", stack: "base", output: "url" } },
});

export const stackOutput = (version?: string, from = prerequisite()): StackOutputView => ({
  stack: "base",
  output: "url",
  from,
  ...(version !== undefined && { version }),
});

export const resync = (seconds: number) => ({ continueResyncOnCommitMatch: true, resyncFrequencySeconds: seconds });
