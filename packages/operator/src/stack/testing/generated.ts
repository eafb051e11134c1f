/** For tests: the objects that a Stack generates. */
import { normalizeStack, type NormalStack, type Stack, type StackSpec, type Workspace } from "@pko/api";

import { workspaceObject } from "../desired/workspace.ts";
import { stackOf } from "./views.ts";

interface Generated {
  readonly stack: Stack;
  readonly spec: NormalStack;
  readonly workspace: Workspace;
}

export function generated(spec: Partial<StackSpec>): Generated {
  const stack = stackOf({ spec });
  const normal = normalizeStack(stack);
  if (!normal.ok) throw new Error(JSON.stringify(normal.problems));
  const workspace = workspaceObject(stack, normal.value, { origin: { program: { name: "program", generation: 1 } } });
  return { stack, spec: normal.value, workspace };
}
