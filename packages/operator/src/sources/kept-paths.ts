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
  const namespaces = [...Map.groupBy(all, ({ namespace }) => namespace).values()].map((kept) => ({
    bytes: total(kept),
    bySize: kept.toSorted((one, other) => one.bytes - other.bytes),
  }));
  const dropped: T[] = [];
  for (let excess = total(all) - maxBytes; excess > 0;) {
    const most = namespaces.reduce((one, other) => (other.bytes > one.bytes ? other : one));
    const largest = most.bySize.pop();
    if (!largest) return dropped;
    most.bytes -= largest.bytes;
    excess -= largest.bytes;
    dropped.push(largest);
  }
  return dropped;
}

const total = (kept: readonly KeptPaths[]): number => kept.reduce((bytes, each) => bytes + each.bytes, 0);
