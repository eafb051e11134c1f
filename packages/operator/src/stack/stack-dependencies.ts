/** The Stacks of the same namespace on which a Stack depends. Pure. */
export { dependenciesOf, outputReferences, type OutputReference } from "@pko/api";

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
