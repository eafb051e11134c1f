/** For tests: views of a Stack, in few words. */
import {
  cancellationRequestAnnotation,
  normaliseStack,
  reconcileRequestAnnotation,
  stackFinalizer,
  type LastUpdate,
  type Stack,
  type StackSpec,
  type StackStatus,
  type Workspace,
} from "@pko/api";

import { stacks } from "../../kinds.ts";
import type { SourceView } from "../../sources/source-view.ts";
import { planStack, type Plan } from "../plan.ts";
import { statusOf } from "../status.ts";
import { timeText, type Trigger } from "../trigger.ts";
import type { PrerequisiteView, StackOutputView, StackView, UpdateView, WorkspaceView } from "../view.ts";
import { workspaceObject, type WorkspaceOrigin } from "../workspace-object.ts";

export const now = Date.UTC(2030, 0, 1, 12);
export const ago = (seconds: number): string => timeText(now - seconds * 1000);

export interface Setting {
  readonly spec?: Partial<StackSpec>;
  readonly status?: StackStatus;
  /** As of a status whose last update succeeded for all that is asked now, unless told otherwise. */
  readonly last?: LastUpdate;
  readonly generation?: number;
  readonly request?: string;
  /** The Update that is to be cancelled. */
  readonly cancelled?: string;
  readonly deleting?: boolean;
  readonly finalizer?: boolean;
  readonly source?: SourceView;
  /** Ready for what is wanted when absent. */
  readonly workspace?:
    "absent" | "other" | "preparing" | "unseen" | "deleting" | "foreign" | { failed: string } | { warning: string };
  /** What the Workspace was made from; the source when absent. */
  readonly origin?: WorkspaceOrigin;
  readonly updates?: readonly UpdateView[];
  readonly cycle?: readonly string[];
  readonly prerequisites?: readonly PrerequisiteView[];
  readonly stackOutputs?: readonly StackOutputView[];
  readonly configInputs?: StackView["configInputs"];
  readonly missing?: readonly string[];
  readonly outputs?: StackView["outputs"];
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

export const anUpdate = (changes: Partial<UpdateView> = {}): UpdateView => ({
  name: "web-now",
  uid: "uid-of-now",
  deleting: false,
  type: "up",
  state: "running",
  held: true,
  finalizers: [stackFinalizer],
  resourceVersion: "1",
  createdAt: now - 60_000,
  trigger: aTrigger(),
  report: {},
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
  const { generation = 1, deleting = false, finalizer = true, request, cancelled } = setting;
  const annotations = {
    ...(request !== undefined && { [reconcileRequestAnnotation]: request }),
    ...(cancelled !== undefined && { [cancellationRequestAnnotation]: cancelled }),
  };
  const status = setting.last
    ? { ...settled(generation), lastUpdate: setting.last, ...setting.status }
    : setting.status;
  return {
    apiVersion: stacks.apiVersion,
    kind: stacks.kind,
    metadata: {
      name: "web",
      namespace: "default",
      uid: "uid-of-web",
      resourceVersion: "7",
      generation,
      creationTimestamp: ago(7200),
      ...(deleting && { deletionTimestamp: ago(60) }),
      ...(finalizer && { finalizers: [stackFinalizer] }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
    spec: { stack: "dev", ...sourceFields(setting.spec), ...setting.spec },
    ...(status && { status }),
  };
}

const sourceFields = (spec: Partial<StackSpec> = {}): Partial<StackSpec> =>
  spec.projectRepo || spec.fluxSource || spec.workspaceTemplate?.spec?.local ? {} : { programRef: { name: "program" } };

const settled = (generation: number): StackStatus => ({
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
  const spec = normaliseStack(stack);
  const { source = readySource } = setting;
  return {
    now,
    stack,
    spec,
    updates: setting.updates ?? [],
    workspace: workspaceOf(setting, stack),
    source,
    cycle: setting.cycle ?? [],
    prerequisites: setting.prerequisites ?? [],
    stackOutputs: setting.stackOutputs ?? [],
    configInputs: setting.configInputs ?? [],
    missing: setting.missing ?? [],
    outputs: setting.outputs ?? { kind: "none" },
  };
}

const foreignWorkspace: WorkspaceView = {
  kind: "foreign",
  occupant: { kind: "Workspace", namespace: "default", name: "web", owner: { kind: "Stack", name: "other" } },
};

function workspaceOf({ workspace, origin, source = readySource }: Setting, stack: Stack): WorkspaceView {
  if (workspace === "absent" || workspace === "deleting") return { kind: workspace };
  if (workspace === "foreign") return foreignWorkspace;
  const normal = normaliseStack(stack);
  if (!normal.ok) return { kind: "absent" };
  const from = origin ?? (source.kind === "ready" ? source.spec : {});
  const wanted = workspaceObject(
    stack,
    normal.value,
    workspace === "other" ? { git: { url: "https://a/b", ref: "x" } } : from,
  );
  const object: Workspace = { ...wanted, metadata: { ...wanted.metadata, uid: "uid-of-workspace", generation: 1 } };
  return { kind: "present", object, state: stateOf(workspace) };
}

function stateOf(workspace: Setting["workspace"]): Extract<WorkspaceView, { kind: "present" }>["state"] {
  if (typeof workspace === "object") {
    if ("warning" in workspace) return { kind: "ready", warning: workspace.warning };
    return { kind: "failed", reason: workspace.failed, message: "npm: 404" };
  }
  if (workspace === "preparing" || workspace === "unseen") return { kind: "preparing", message: "installing." };
  return { kind: "ready" };
}

/** A plan in a line: the step, and the condition that people see. */
export function told(setting: Setting): string {
  const view = viewOf(setting);
  return toldOf(view, planStack(view));
}

function toldOf(view: StackView, plan: Plan): string {
  const { step, outcome } = plan;
  const released = plan.release.length > 0 ? "release, " : "";
  const what = step.kind === "createUpdate" ? `create ${step.trigger.type} for ${step.why}` : step.kind;
  if (outcome.kind === "keep") return `${released}${what}: keep`;
  const conditions = statusOf(view, plan).conditions ?? [];
  const shown = conditions.find(({ type }) => type !== "Ready") ?? conditions[0];
  return `${released}${what}: ${shown?.type === "Ready" ? "Ready" : (shown?.reason ?? "?")}`;
}
