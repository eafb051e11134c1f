/** Mutants that no test detects, and those of which `survivors.json` says why. Pure. */
import { applied, type Mutant } from "./mutate.ts";

/** Without line numbers, which change with every edit of the file. Equal changes of equal lines are one. */
export interface Change {
  readonly file: string;
  /** The source lines that the mutant changes, without line breaks and indentation. */
  readonly before: string;
  readonly after: string;
}

/** An entry of `survivors.json`. */
export interface KnownSurvivor extends Change {
  /** Why no test can, or need, detect it. */
  readonly reason: string;
}

interface Survivors<T> {
  readonly known: readonly (T & KnownSurvivor)[];
  readonly unknown: readonly T[];
  /** Entries whose mutants are detected, or do not exist. */
  readonly stale: readonly KnownSurvivor[];
}

export function changeOf(file: string, source: string, mutant: Mutant): Change {
  const first = source.lastIndexOf("\n", mutant.start - 1) + 1;
  const end = source.indexOf("\n", mutant.end);
  const lines = source.slice(first, end < 0 ? undefined : end);
  const within = { ...mutant, start: mutant.start - first, end: mutant.end - first };
  return { file, before: onOneLine(lines), after: onOneLine(applied(lines, within)) };
}

export function compareSurvivors<T extends Change>(
  found: readonly T[],
  listed: readonly KnownSurvivor[],
): Survivors<T> {
  const entries = new Map(listed.map((entry) => [keyOf(entry), entry]));
  const survived = new Set(found.map(keyOf));
  return {
    known: found.flatMap((each) => {
      const entry = entries.get(keyOf(each));
      return entry ? [{ ...each, reason: entry.reason }] : [];
    }),
    unknown: found.filter((each) => !entries.has(keyOf(each))),
    stale: listed.filter((entry) => !survived.has(keyOf(entry))),
  };
}

export interface Outcome {
  readonly all: number;
  readonly killed: number;
  /** How many survived without a reason, and how many entries are stale. */
  readonly unknown: number;
  readonly stale: number;
  /** Of all rules. Other runs do not try the mutants of all entries, and may be for a rule that has no tests yet. */
  readonly isComplete: boolean;
}

const leastKilled = 0.9;

/** Why a run fails. */
export function failuresOf({ all, killed, unknown, stale, isComplete }: Outcome): string[] {
  return [
    killed / all < leastKilled && `fewer than ${100 * leastKilled} % were killed: add tests`,
    isComplete &&
      unknown > 0 &&
      `${unknown} survived without a reason: add a test for each, or an entry with the reason to survivors.json`,
    isComplete && stale > 0 && `survivors.json lists what no longer survives (${stale}): remove it`,
  ].filter((each) => each !== false);
}

const onOneLine = (text: string): string => text.trim().replaceAll(/\s+/g, " ");

const keyOf = ({ file, before, after }: Change): string => JSON.stringify([file, before, after]);
