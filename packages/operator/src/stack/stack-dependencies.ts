/** The Stacks of the same namespace on which a Stack depends. Pure. */
import { normalizeStack, type NormalStack, type Stack, type ValueSource } from "@pko/api";

export function dependenciesOf(stack: Stack): string[] {
  const normal = normalizeStack(stack);
  if (!normal.ok) return [];
  const { prerequisites } = normal.value;
  const outputs = outputReferences(normal.value);
  return [...new Set([...prerequisites, ...outputs].map(({ stack }) => stack))];
}

export interface OutputReference {
  readonly stack: string;
  readonly output: string;
}

export function outputReferences({ env, config }: Pick<NormalStack, "env" | "config">): OutputReference[] {
  const sources: (ValueSource | NormalStack["config"][number]["from"])[] = [...env, ...config].map(({ from }) => from);
  return sources.flatMap((from) => (from.kind === "stackOutput" ? [{ stack: from.stack, output: from.output }] : []));
}

/** All Stacks on which a Stack depends, directly or through others. */
export function allDependencies(start: string, dependencies: (name: string) => readonly string[]): Set<string> {
  const found = new Set<string>();
  const walk = (name: string): void => {
    for (const next of dependencies(name)) {
      if (found.has(next)) continue;
      found.add(next);
      walk(next);
    }
  };
  walk(start);
  return found;
}

/** The path from a Stack along its dependencies back to itself; empty if there is none. */
export function cycleFrom(start: string, dependencies: (name: string) => readonly string[]): string[] {
  const visited = new Set<string>();
  const walk = (name: string, path: readonly string[]): string[] => {
    for (const next of dependencies(name)) {
      if (next === start) return [...path, start];
      if (visited.has(next)) continue;
      visited.add(next);
      const found = walk(next, [...path, next]);
      if (found.length > 0) return found;
    }
    return [];
  };
  return walk(start, [start]);
}
