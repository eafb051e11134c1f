/** Updates that wait for their Workspace. */
import { pauseMs } from "../../shared/pauses.ts";
import * as messages from "../messages.ts";
import type { Outcome } from "../outcome.ts";
import type { UpdatePlan } from "../steps.ts";
import { hasStarted, sinceCreation, type SiblingFacts, type UpdateView } from "../view.ts";

type WaitingReason = Extract<Outcome, { kind: "waiting" }>["reason"];

function wait(message: string, reason: WaitingReason = "WorkspaceNotReady"): UpdatePlan {
  return { steps: [], outcome: { kind: "waiting", reason, message } };
}

export function workspaceUnavailable({ workspace, update }: UpdateView): UpdatePlan | undefined {
  const { workspaceName: name = "", stackName: stack = "" } = update.spec ?? {};
  switch (workspace.state) {
    case "missing":
      return wait(messages.workspaceMissing(name), "WorkspaceNotFound");
    case "deleting":
      return wait(messages.workspaceDeleting(name));
    case "otherStack":
      return wait(messages.stackNotYet({ workspace: name, stack, stacks: workspace.stacks }));
    case "notReady":
      return wait(messages.workspaceNotReady(name, workspace.message));
    case "idle":
    case "ready":
      return undefined;
  }
}

/** It could run, or its Workspace could be woken for it. */
export function slotMissing({ slot }: UpdateView): UpdatePlan | undefined {
  switch (slot.kind) {
    case "held":
      return undefined;
    case "none":
      return { steps: [{ kind: "claimSlot", starts: false }], outcome: { kind: "unchanged" } };
    case "waiting":
      return { ...wait(messages.waitingForSlot(slot), "WaitingForSlot"), requeueAt: slot.refreshAt };
  }
}

export function workspaceIdle({ workspace, update }: UpdateView): UpdatePlan | undefined {
  return workspace.state === "idle" ? wait(messages.workspaceIdle(update.spec?.workspaceName ?? "")) : undefined;
}

/** A workspace has one run at a time, and the Updates that wait for it start in the order of their creation. */
export function notFirst(view: UpdateView): UpdatePlan | undefined {
  const before = updateBefore(view);
  return before && wait(messages.notFirst(before.name));
}

/** The Update of the same workspace that runs first. */
export function updateBefore(view: UpdateView): SiblingFacts | undefined {
  const { siblings, update } = view;
  if (hasStarted(view)) return undefined;
  const { creationTimestamp: createdAt = "", name = "" } = update.metadata;
  const earlier = siblings
    .filter((other) => other.canRun && !other.isDeleting && isEarlier(other, { createdAt, name }))
    .toSorted((a, b) => (isEarlier(a, b) ? -1 : 1));
  return siblings.find((other) => other.hasStarted) ?? earlier[0];
}

type Creation = Pick<SiblingFacts, "createdAt" | "name">;

const isEarlier = (a: Creation, b: Creation): boolean => `${a.createdAt}/${a.name}` < `${b.createdAt}/${b.name}`;

/** The address belongs to a pod that no longer exists, or is not in the store yet. */
export function podNotReady({ workspace, pod }: UpdateView): UpdatePlan | undefined {
  if (workspace.state !== "ready") return undefined;
  const isReady = pod && !pod.isDeleting && pod.agent.uid !== "" && pod.agent.ip === workspace.address.host;
  return isReady ? undefined : wait(messages.podReplaced);
}

/** In case the Workspace controller does not requeue it. */
const clearancePauses = { least: 5000, most: 60_000 } as const;

/** Usually the Workspace takes less time, and nothing is reported. */
const unreportedMs = 30_000;

/** A Secret may have been changed for this very Update, so its Workspace reads its inputs first, and prepares what has changed. */
export function inputsNotRead(view: UpdateView): UpdatePlan | undefined {
  if (view.isCleared) return undefined;
  const waiting = sinceCreation(view);
  const requeueAt = view.now + pauseMs(waiting, clearancePauses);
  if (waiting.sinceMs < unreportedMs) return { steps: [], outcome: { kind: "unchanged" }, requeueAt };
  return { ...wait(messages.preparedFirst(view.update.spec?.workspaceName ?? "")), requeueAt };
}
