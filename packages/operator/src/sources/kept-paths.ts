/** How much memory the paths of comparisons take, and which of them do not fit. Pure. */
import type { ComparedCommits } from "./git-http.ts";

export interface KeptPaths {
  readonly namespace: string;
  readonly bytes: number;
}

/** Of the object of a text, besides its characters. */
const textBytes = 32;

/** About; twice as much if paths have characters beyond Latin-1. */
export const sizeOf = (result: ComparedCommits): number =>
  result.kind === "compared" ? result.paths.reduce((bytes, path) => bytes + textBytes + path.length, 0) : 0;

/** The largest of the namespace that has the most, until the rest fits: a tenant with many large commits must not affect others. */
export function exceeding<T extends KeptPaths>(all: readonly T[], maxBytes: number): T[] {
  const kept = new Set(all);
  const dropped: T[] = [];
  while (total(kept) > maxBytes) {
    const byNamespace = [...Map.groupBy(kept, ({ namespace }) => namespace).values()];
    const [most = []] = byNamespace.toSorted((one, other) => total(other) - total(one));
    const [largest] = most.toSorted((one, other) => other.bytes - one.bytes);
    if (!largest) return dropped;
    kept.delete(largest);
    dropped.push(largest);
  }
  return dropped;
}

const total = (kept: Iterable<KeptPaths>): number => [...kept].reduce((bytes, each) => bytes + each.bytes, 0);
