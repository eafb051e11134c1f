/** The Stacks of the same namespace on which a Stack depends: prerequisites, and outputs that it reads. Pure. */
import type { Stack } from "../kinds.ts";
import type { ValueSource } from "./reference.ts";
import { normalizeStack, type NormalStack } from "./stack.ts";

export function dependenciesOf(stack: Stack): string[] {
  if (!mayDepend(stack)) return [];
  const normal = normalizeStack(stack);
  if (!normal.ok) return [];
  const { prerequisites } = normal.value;
  const outputs = outputReferences(normal.value);
  return [...new Set([...prerequisites, ...outputs].map(({ stack }) => stack))];
}

/**
 * Most Stacks depend on no other. Every change of a status reads the dependencies, and normalizing a spec takes a hundred
 * times longer than this search, which may find more than there is.
 */
const mayDepend = ({ spec }: Stack): boolean => /"prerequisites"|"StackOutput"/.test(JSON.stringify(spec));

export interface OutputReference {
  readonly stack: string;
  readonly output: string;
}

export function outputReferences({ env, config }: Pick<NormalStack, "env" | "config">): OutputReference[] {
  const sources: (ValueSource | NormalStack["config"][number]["from"])[] = [...env, ...config].map(({ from }) => from);
  return sources.flatMap((from) => (from.kind === "stackOutput" ? [{ stack: from.stack, output: from.output }] : []));
}
