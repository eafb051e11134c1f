/** Rules about the WorkspaceClass of the Stack's namespace. */
import * as messages from "../messages.ts";
import { processing, stalled } from "../outcome.ts";
import { unchanged, wait, type StackPlan } from "../steps.ts";
import type { StackView } from "../view.ts";

/** The watch of namespaces reports it soon; this is only in case it does not. */
const recheckMs = 5000;

/** The cache of Stacks is ahead of the cache of namespaces. */
export function classUnknown({ workspaceClass, stack, now }: StackView): StackPlan | undefined {
  if (workspaceClass.kind !== "unknown") return undefined;
  const outcome = stack.status ? unchanged : processing(messages.namespaceUnknown, messages.labelsOfNamespace);
  return wait(outcome, now + recheckMs);
}

export function classConflict({ workspaceClass, stack }: StackView): StackPlan | undefined {
  if (workspaceClass.kind !== "conflict") return undefined;
  const { namespace = "" } = stack.metadata;
  return wait(stalled("WorkspaceClassConflict", messages.classConflict(namespace, workspaceClass.names)));
}
