/** Reads everything that the rules of an Update need, from the stores and from the runs that are followed. */
import { normalizeUpdate, parseDuration, type Approval, type Stack, type Update, type Workspace } from "@pko/api";
import { defined, refKey, type Key, type ApiObject, type Store } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import type { Projects, Runs } from "../../agents/agents.ts";
import type { PolicyProbe } from "../../approvals/policy-probe.ts";
import { approvalPlanIndex } from "../../shared/approvals.ts";
import { defaultLostNodeMs } from "../../shared/pods/lost-node.ts";
import type { Clearances } from "../../shared/channels/clearances.ts";
import type { Slots } from "../../shared/channels/slots.ts";
import type { UpdateTraces } from "../../shared/traces/update-traces.ts";
import { workspaceIndex, workspaceKeyOf } from "../../shared/updates.ts";
import { leastApproval, type ClassReader, type ClassView } from "../../shared/workspace-classes.ts";
import { judgePod, podNameOf, podOwner } from "../../shared/pods/workspace-pod.ts";
import { approvalFacts, planRefOf, stackRefOf } from "./approval.ts";
import { podFacts, workspaceFacts, workspaceRefOf } from "./facts.ts";
import { lostRunsOf } from "./lost-runs.ts";
import { expectedResources, formerOutputs, unfinishedSiblings } from "./siblings.ts";
import type { ApprovalFacts, UpdateView } from "../view.ts";

export interface UpdateWorld {
  /** With `updateIndexers`. */
  readonly updates: Store<Update>;
  readonly workspaces: Store<Workspace>;
  readonly pods: Store<ApiObject<Pod>>;
  readonly stacks: Store<Stack>;
  /** With `approvalIndexers`. */
  readonly approvals: Store<Approval>;
  readonly approvalPolicy: Pick<PolicyProbe, "state">;
  readonly classOf: ClassReader;
  readonly runs: Pick<Runs, "find">;
  readonly projects: Projects;
  readonly clearances?: Pick<Clearances, "has">;
  readonly slots: Slots;
  /** `defaultLostNodeMs` when absent. */
  readonly lostNodeAfterMs?: number;
  /** Absent if traces are off. */
  readonly traces?: Pick<UpdateTraces, "traceparent">;
}

/** Undefined for an Update that does not exist. */
export function observeUpdate(world: UpdateWorld, key: Key, { now }: { readonly now: number }): UpdateView | undefined {
  const update = world.updates.get(key);
  if (!update) return undefined;
  const workspaceKey = workspaceKeyOf(update);
  const workspace = world.workspaces.get(workspaceKey);
  const siblings = world.updates.byIndex(workspaceIndex, workspaceKey);
  const ref = workspaceRefOf(update);
  const pod = findPod(world, update);
  const { ttlAfterCompleted } = update.spec ?? {};
  return {
    now,
    update,
    spec: normalizeUpdate(update),
    ...defined({
      ttlMs: ttlAfterCompleted === undefined ? undefined : parseDuration(ttlAfterCompleted),
      pod: pod && podFacts(pod, ref, workspace),
      run: world.runs.find({ uid: update.status?.podUid ?? "", ...addressOf(pod, update) }, update.metadata.uid ?? ""),
      project: world.projects.projectOf(ref),
      expectedResources: expectedResources(update, siblings),
      formerOutputs: formerOutputs(update, siblings),
      logLevel: workspace?.spec?.pulumiLogLevel,
      traceparent: world.traces?.traceparent(update.metadata.uid ?? ""),
    }),
    workspace: workspaceFacts(workspace, update),
    siblings: unfinishedSiblings(update, siblings, workspace),
    approval: observeApproval(world, update, workspace),
    approvalPolicy: world.approvalPolicy.state(update.metadata.namespace ?? ""),
    lostNodeAfterMs: world.lostNodeAfterMs ?? defaultLostNodeMs,
    isCleared: world.clearances?.has(workspaceKey, key) ?? true,
    slot: world.slots.state(workspaceKey),
    lostRuns: lostRunsOf(update, siblings),
  };
}

/** Of the pod in which it runs. */
function addressOf(pod: ApiObject<Pod> | undefined, { status }: Update): { readonly ip?: string } {
  const ip = pod?.metadata.uid === status?.podUid ? pod?.status?.podIP : undefined;
  return ip === undefined ? {} : { ip };
}

function leastIn(view: ClassView): ApprovalFacts["least"] {
  return view.kind === "unknown" || view.kind === "conflict" ? "unknown" : leastApproval(view);
}

function observeApproval(
  { stacks, updates, approvals, classOf }: UpdateWorld,
  update: Update,
  workspace: Workspace | undefined,
): ApprovalFacts {
  const [stackRef, planRef] = [stackRefOf(workspace), planRefOf(update)];
  return approvalFacts({
    workspace,
    stack: stackRef && stacks.get(refKey(stackRef)),
    plan: planRef && updates.get(refKey(planRef)),
    approvals: planRef ? approvals.byIndex(approvalPlanIndex, refKey(planRef)) : [],
    least: leastIn(classOf(update.metadata.namespace ?? "")),
  });
}

/**
 * The pod in which the Update runs, whatever controls it now. Before it runs, only a pod of a StatefulSet with the workspace's
 * name; whether that StatefulSet belongs to the Workspace is confirmed before the start.
 */
function findPod({ pods }: UpdateWorld, update: Update): ApiObject<Pod> | undefined {
  const { namespace, name } = workspaceRefOf(update);
  const podUid = update.status?.podUid;
  const pod = pods.get(refKey({ namespace, name: podNameOf(name) }));
  if (!pod || (podUid !== undefined && pod.metadata.uid === podUid)) return pod;
  // Without a UID to compare, "former" means that the kind and the name of the controller match.
  return judgePod(pod, podOwner(name)).kind === "former" ? pod : undefined;
}
