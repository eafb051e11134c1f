/** Updates that wait for their Workspace. */
import * as messages from "../messages.ts";
import type { Outcome } from "../outcome.ts";
import type { UpdatePlan } from "../steps.ts";
import type { UpdateView } from "../view.ts";

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
      return wait(messages.workspaceIdle(name));
    case "ready":
      return undefined;
  }
}

export function notFirst({ before }: UpdateView): UpdatePlan | undefined {
  return before === undefined ? undefined : wait(messages.notFirst(before));
}

/** The address belongs to a pod that no longer exists, or is not in the store yet. */
export function podNotReady({ workspace, pod }: UpdateView): UpdatePlan | undefined {
  if (workspace.state !== "ready") return undefined;
  const isReady = pod && !pod.isDeleting && pod.agent.uid !== "" && pod.agent.ip === workspace.address.host;
  return isReady ? undefined : wait(messages.podReplaced);
}

/** In case the Workspace controller does not requeue it. */
const clearanceMs = 5_000;

/**
 * A Secret may have been changed for this very Update, so its Workspace reads its inputs first. This is too short to be
 * reported.
 */
export function inputsNotRead({ isCleared, now }: UpdateView): UpdatePlan | undefined {
  return isCleared ? undefined : { steps: [], outcome: { kind: "unchanged" }, requeueAt: now + clearanceMs };
}
