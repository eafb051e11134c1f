/** Views of Workspaces for tests, in words: `view(ready(), pod(), update("waiting"))`. */
import { normaliseWorkspace, workspaceKind, type Condition, type Workspace, type WorkspaceStatus } from "@pko/api";
import type { PodSpec } from "kubernetes-types/core/v1";

import { agentPort } from "../../agents/agents.ts";
import { buildObjects } from "../build-objects.ts";
import { buildPodTemplate } from "../build-pod.ts";
import type { Explanation } from "../explain-pod.ts";
import { buildPrepareRequest } from "../prepare-request.ts";
import type { Inputs, PodFacts, StatefulSetFacts, UpdateFacts, WorkspaceView } from "../view.ts";

export const now = Date.UTC(2030, 0, 1);
export const ago = (seconds: number): number => now - seconds * 1000;
const time = (ms: number): string => new Date(ms).toISOString().replace(".000", "");

export const settings = { agentImage: "agent:1", idleTimeoutMs: 600_000 };
const plainSpec = { local: { dir: "/app" }, stacks: [{ name: "dev" }] };

export type Trait = (view: WorkspaceView) => WorkspaceView;

/** A Workspace that has just been created, with all it needs at hand. */
export function view(...traits: readonly Trait[]): WorkspaceView {
  const plain: WorkspaceView = {
    now,
    workspace: {
      apiVersion: workspaceKind.apiVersion,
      kind: workspaceKind.kind,
      metadata: { name: "web", namespace: "team", uid: "w1", generation: 2, creationTimestamp: time(ago(3600)) },
    },
    spec: normaliseWorkspace({ metadata: { name: "web", namespace: "team" }, spec: plainSpec }),
    updates: [],
    idleTimeoutMs: settings.idleTimeoutMs,
    lostNodeAfterMs: 300_000,
    yielding: [],
  };
  return [specified(plainSpec), ...traits].reduce((each, trait) => trait(each), plain);
}

/** With this spec; what the pod reads is all there. */
export const specified =
  (spec: object): Trait =>
  (each) => {
    const workspace: Workspace = { ...each.workspace, spec };
    const normal = normaliseWorkspace(workspace);
    const { inputs: _, ...rest } = each;
    if (!normal.ok) return { ...rest, workspace, spec: normal };
    const requested = buildPrepareRequest(normal.value, { secrets: [] });
    const built = buildPodTemplate(normal.value, { settings });
    const objects = built.ok
      ? buildObjects({ workspace, normal: normal.value, template: built.template, referencesHash: "r" })
      : "";
    const pod: Inputs["pod"] =
      built.ok && typeof objects !== "string"
        ? { ok: true, template: built.template, objects }
        : { ok: false, problems: built.ok ? [typeof objects === "string" ? objects : ""] : built.problems };
    return { ...rest, workspace, spec: normal, inputs: { pod, missing: [], requested, read: [] } };
  };

export const input =
  (part: Partial<Inputs>): Trait =>
  (each) =>
    each.inputs ? { ...each, inputs: { ...each.inputs, ...part } } : each;

export const status =
  (part: WorkspaceStatus): Trait =>
  (each) => ({ ...each, workspace: { ...each.workspace, status: { ...each.workspace.status, ...part } } });

function condition(part: Partial<Condition> = {}): Condition {
  return {
    type: "Ready",
    status: "True",
    reason: "Succeeded",
    message: "the workspace is prepared",
    lastTransitionTime: time(ago(60)),
    observedGeneration: 2,
    ...part,
  };
}

/** Ready for its present spec, for so many seconds. */
export const ready = (seconds = 60): Trait =>
  status({
    observedGeneration: 2,
    address: `10.0.0.1:${agentPort}`,
    pulumiVersion: "3.259.0",
    conditions: [condition({ lastTransitionTime: time(ago(seconds)) })],
  });

export const notReady = (seconds = 60, reason = "WaitingForReplicas"): Trait =>
  status({
    observedGeneration: 2,
    conditions: [condition({ status: "False", reason, message: "not yet", lastTransitionTime: time(ago(seconds)) })],
  });

export const withoutAddress: Trait = (each) => {
  const { address: _, ...rest } = each.workspace.status ?? {};
  return { ...each, workspace: { ...each.workspace, status: rest } };
};

export const changed: Trait = (each) => ({
  ...each,
  workspace: { ...each.workspace, metadata: { ...each.workspace.metadata, generation: 3 } },
});

export const deleted: Trait = (each) => ({
  ...each,
  workspace: { ...each.workspace, metadata: { ...each.workspace.metadata, deletionTimestamp: time(now) } },
});

const starting: Explanation = { message: "the pod is starting", stuck: false };

export const pod =
  (part: Partial<PodFacts> = {}): Trait =>
  (each) => ({
    ...each,
    pod: {
      agent: { workspace: { namespace: "team", name: "web" }, uid: "p1", restarts: 0, ip: "10.0.0.1" },
      isUp: true,
      isDeleting: false,
      isUnschedulable: false,
      revision: "one",
      explanation: starting,
      ...part,
    },
  });

export const podDown = (message = "the pod is starting", part: Partial<PodFacts> = {}): Trait =>
  pod({ isUp: false, explanation: { message, stuck: message !== starting.message }, ...part });

/** Its container is next, or runs already. */
export const podComing: Trait = (each) => {
  const { pod: down, ...rest } = podDown()(each);
  return { ...rest, ...(down && { pod: { ...down, agent: { ...down.agent, isComing: true } } }) };
};

/** A StatefulSet as it should be, but for what is said. */
export const set =
  (part: Partial<StatefulSetFacts> = {}): Trait =>
  (each) => {
    const builtHash = each.inputs?.pod.ok ? each.inputs.pod.objects.hash : "h";
    return {
      ...each,
      writtenGeneration: 1,
      statefulSet: {
        uid: "s1",
        generation: 1,
        replicas: 1,
        builtHash,
        updateRevision: "one",
        isDeleting: false,
        ...part,
      },
    };
  };

export const unseenSet: Trait = (each) => {
  const seen = set()(each);
  const { updateRevision: _, ...facts } = seen.statefulSet ?? {
    uid: "",
    generation: 0,
    replicas: 1,
    builtHash: "",
    isDeleting: false,
  };
  return { ...seen, statefulSet: facts };
};

export const update =
  (phase: UpdateFacts["phase"], facts: Partial<UpdateFacts> = {}): Trait =>
  (each) => ({ ...each, updates: [...each.updates, { name: `${phase}-${each.updates.length}`, phase, ...facts }] });

export const given =
  (part: Partial<WorkspaceView>): Trait =>
  (each) => ({ ...each, ...part });

/** The pod as it would be made from a spec, for builders' tests. */
export function podSpecOf(spec: object): PodSpec {
  const { inputs } = view(specified(spec));
  if (!inputs?.pod.ok || !inputs.pod.template.spec) throw new Error("no pod");
  return inputs.pod.template.spec;
}
