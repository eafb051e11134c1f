/** Rules about the WorkspaceClass of the Stack's namespace. */
import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { pauseMs } from "../../shared/pauses.ts";
import * as messages from "../messages.ts";
import { processing, stalled } from "../outcome.ts";
import { unchanged, wait, type StackPlan } from "../steps.ts";
import type { StackView } from "../view.ts";

/** The watch of namespaces reports it soon; this is only in case it does not. The Stack may have waited since it was created. */
const recheckPauses = { least: 5000, most: 60_000 } as const;

/** The cache of Stacks is ahead of the cache of namespaces. */
export function classUnknown({ workspaceClass, stack, now }: StackView): StackPlan | undefined {
  if (workspaceClass.kind !== "unknown") return undefined;
  const outcome = stack.status ? unchanged : processing(messages.namespaceUnknown, messages.labelsOfNamespace);
  const { uid = "", creationTimestamp } = stack.metadata;
  const sinceMs = now - (parseTimestamp(creationTimestamp) ?? now);
  return wait(outcome, now + pauseMs({ sinceMs, id: uid }, recheckPauses));
}

export function classConflict({ workspaceClass, stack }: StackView): StackPlan | undefined {
  if (workspaceClass.kind !== "conflict") return undefined;
  const { namespace = "" } = stack.metadata;
  return wait(stalled("WorkspaceClassConflict", messages.classConflict(namespace, workspaceClass.names)));
}
