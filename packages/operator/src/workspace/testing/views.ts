/** Views of Workspaces for tests, composed of traits: `view(ready(), pod(), update("waiting"))`. */
import {
  normalizeWorkspace,
  wakeUntilAnnotation,
  workspaceKind,
  type Condition,
  type Workspace,
  type WorkspaceStatus,
} from "@pko/api";
import { timestamp } from "@pko/kube";
import type { PodSpec } from "kubernetes-types/core/v1";

import { agentPort } from "../../agents/agents.ts";
import { buildInputs, draftPod } from "../pod/build-inputs.ts";
import type { Explanation } from "../pod/explain-pod.ts";
import type { Inputs, PodFacts, Preemptions, StatefulSetFacts, UpdateFacts, WorkspaceView } from "../view.ts";

export const now = Date.UTC(2030, 0, 1);
export const ago = (seconds: number): number => now - seconds * 1000;

export const settings = { agentImage: "agent:1", idleTimeoutMs: 600_000 };
const plainSpec = { local: { dir: "/app" }, stacks: [{ name: "dev" }] };

export type Trait = (view: WorkspaceView) => WorkspaceView;

/** A plan for the pod of this Workspace, in which no other one makes room for it. */
export const noPreemptions: Preemptions = {
  victims: new Set(),
  victimOf: new Map(),
  planned: new Set(["team/web"]),
  renewedAt: now + 1000,
};

/** A Workspace that was just created. Its inputs were read and all exist, and no other owner has its names. */
export function view(...traits: readonly Trait[]): WorkspaceView {
  const plain: WorkspaceView = {
    now,
    workspace: {
      apiVersion: workspaceKind.apiVersion,
      kind: workspaceKind.kind,
      metadata: {
        name: "web",
        namespace: "team",
        uid: "w1-158",
        generation: 2,
        creationTimestamp: timestamp(ago(3600)),
      },
    },
    spec: normalizeWorkspace({ metadata: { name: "web", namespace: "team" }, spec: plainSpec }),
    workspaceClass: { kind: "none" },
    updates: [],
    preemptions: noPreemptions,
    slot: { kind: "held", forMs: 0, isWanted: false },
    idleTimeoutMs: settings.idleTimeoutMs,
    lostNodeAfterMs: 300_000,
    certificate: "current",
    occupied: [],
  };
  return [specified(plainSpec), ...traits].reduce((each, trait) => trait(each), plain);
}

/** With this spec; everything that the pod reads exists. */
export const specified =
  (spec: object): Trait =>
  (each) => {
    const workspace: Workspace = { ...each.workspace, spec };
    const normal = normalizeWorkspace(workspace);
    const { inputs: _, ...rest } = each;
    if (!normal.ok) return { ...rest, workspace, spec: normal };
    const inputs = buildInputs(draftPod({ workspace, normal: normal.value, settings }), { readings: [] });
    return { ...rest, workspace, spec: normal, inputs: { ...inputs, missing: [] } };
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
    lastTransitionTime: timestamp(ago(60)),
    observedGeneration: 2,
    ...part,
  };
}

/** Ready for its current spec, for the given number of seconds. */
export const ready = (seconds = 60): Trait =>
  status({
    observedGeneration: 2,
    address: `10.0.0.1:${agentPort}`,
    pulumiVersion: "3.259.0",
    conditions: [condition({ lastTransitionTime: timestamp(ago(seconds)) })],
  });

export const notReady = (seconds = 60, reason = "WaitingForReplicas"): Trait =>
  status({
    observedGeneration: 2,
    conditions: [
      condition({ status: "False", reason, message: "not yet", lastTransitionTime: timestamp(ago(seconds)) }),
    ],
  });

export const withoutAddress: Trait = (each) => {
  const { address: _, ...rest } = each.workspace.status ?? {};
  return { ...each, workspace: { ...each.workspace, status: rest } };
};

/** With the annotation that keeps the pod for a person, for this many more seconds. */
export const wokenFor =
  (seconds: number): Trait =>
  (each) => {
    const annotations = { [wakeUntilAnnotation]: timestamp(now + seconds * 1000) };
    return { ...each, workspace: { ...each.workspace, metadata: { ...each.workspace.metadata, annotations } } };
  };

export const changed: Trait = (each) => ({
  ...each,
  workspace: { ...each.workspace, metadata: { ...each.workspace.metadata, generation: 3 } },
});

export const deleted: Trait = (each) => ({
  ...each,
  workspace: { ...each.workspace, metadata: { ...each.workspace.metadata, deletionTimestamp: timestamp(now) } },
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

/** The agent's container starts next, or runs already. */
export const podStarting: Trait = (each) => {
  const { pod: down, ...rest } = podDown()(each);
  return { ...rest, ...(down && { pod: { ...down, agent: { ...down.agent, isStarting: true } } }) };
};

/** A StatefulSet as it should be, except for the given part. */
export const set =
  (part: Partial<StatefulSetFacts> = {}): Trait =>
  (each) => {
    const builtHash = each.inputs?.pod.ok ? each.inputs.pod.objects.hash : "h";
    return {
      ...each,
      written: { uid: "s1", generation: 1 },
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

export const unobservedSet: Trait = (each) => {
  const observed = set()(each);
  const { updateRevision: _, ...facts } = observed.statefulSet ?? {
    uid: "",
    generation: 0,
    replicas: 1,
    builtHash: "",
    isDeleting: false,
  };
  return { ...observed, statefulSet: facts };
};

export const update =
  (phase: UpdateFacts["phase"], facts: Partial<UpdateFacts> = {}): Trait =>
  (each) => ({ ...each, updates: [...each.updates, { name: `${phase}-${each.updates.length}`, phase, ...facts }] });

/** A failed preparation that is retried at this time. */
export const retryAt = (at: number): Trait => given({ retry: { at, failures: 1 } });

/** As before a step has found it out. */
export const without =
  (...facts: readonly ("inputs" | "certificate" | "occupied")[]): Trait =>
  (each) =>
    facts.reduce((rest, fact) => {
      const { [fact]: _, ...others } = rest;
      return others;
    }, each);

/** A pod wants room, and this Workspace of the same namespace is scaled to zero for it. */
export const shortage = (name: string): Trait =>
  given({
    preemptions: {
      ...noPreemptions,
      victims: new Set([`team/${name}`]),
      victimOf: new Map([["team/web", `team/${name}`]]),
    },
  });

export const given =
  (part: Partial<WorkspaceView>): Trait =>
  (each) => ({ ...each, ...part });

/** The pod that is built from a spec, for tests of builders. */
export function podSpecOf(spec: object): PodSpec {
  const { inputs } = view(specified(spec));
  if (!inputs?.pod.ok || !inputs.pod.template.spec) throw new Error("no pod");
  return inputs.pod.template.spec;
}
