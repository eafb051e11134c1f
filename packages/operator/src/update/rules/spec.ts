/** Specs that cannot run. */
import { describeProblems } from "@pko/api";

import * as messages from "../messages.ts";
import type { UpdatePlan } from "../steps.ts";
import { hasStarted, type UpdateView } from "../view.ts";
import { endedWithoutResult } from "./ended.ts";

export function specInvalid(view: UpdateView): UpdatePlan | undefined {
  if (view.spec.ok || hasStarted(view)) return undefined;
  const message = messages.specInvalid(describeProblems(view.spec.problems));
  return endedWithoutResult(view, { reason: "Failed", message });
}

/** Otherwise it would wait forever. A Workspace that is being prepared for a new spec may still get the stack. */
export function stackUnknown(view: UpdateView): UpdatePlan | undefined {
  const { workspace, spec } = view;
  if (workspace.state !== "otherStack" || !workspace.isPrepared || !spec.ok) return undefined;
  const { workspaceName, stackName } = spec.value;
  const message = messages.stackUnknown({
    workspace: workspaceName,
    stack: stackName,
    stacks: workspace.stacks,
  });
  return endedWithoutResult(view, { reason: "Failed", message }, { kind: "confirmStackUnknown" });
}
