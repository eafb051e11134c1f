/**
 * When something is done again: the one place for pauses that grow, and for jitter. Pure. Jitter depends only on the UID of an
 * object, so it is the same after a restart, and objects that were created or changed together do not stay together.
 */

/** How often a status is written that only reports progress: of a start, which usually takes a few seconds, and of a run. */
export const progressMs = { start: 3000, run: 1000 } as const;

const jitter = 0.1;

/** The duration, up to 10 % shorter or longer. */
export const jittered = (ms: number, id: string): number => ms * (1 + jitter * spreadOf(id));

export interface PauseLimits {
  readonly least: number;
  readonly most: number;
}

/** Why the object waits, and how long it has been waiting for that. */
interface Wait {
  readonly sinceMs: number;
  /** The UID of the object that waits. */
  readonly id: string;
}

/** Until something is read again that no watch reports: a quarter of the time that has passed. */
export function pauseMs({ sinceMs, id }: Wait, { least, most }: PauseLimits): number {
  return jittered(Math.min(most, Math.max(least, sinceMs / 4)), id);
}

/** A number between -1 and 1 (FNV-1a). */
function spreadOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < id.length; index++) hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193) >>> 0;
  return ((hash % 2001) - 1000) / 1000;
}
