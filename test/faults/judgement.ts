/** What a crash has done to a life: nothing, if all is as in a life without crashes. Pure. */
import type { Outcome } from "./life.ts";

/**
 * An update that is missing, one too many, a phase without end, a Stack that was deleted without its destroy, a request that
 * the operator's roles do not allow, another end state.
 */
export const faults = ["lost", "doubled", "stuck", "undestroyed", "forbidden", "other"] as const;
export type Fault = (typeof faults)[number];

export interface Failure {
  readonly kind: Fault;
  /** In a line or two. */
  readonly text: string;
}

type Counts = Readonly<Record<string, number>>;

/** The first way in which they differ. */
export function differenceOf(expected: Outcome, actual: Outcome): Failure | undefined {
  return (
    forbidden(actual) ??
    undestroyed(actual) ??
    otherRuns(expected, actual) ??
    otherChanges(expected, actual) ??
    otherEnd(expected, actual)
  );
}

function forbidden({ forbidden }: Outcome): Failure | undefined {
  if (forbidden.length === 0) return undefined;
  return { kind: "forbidden", text: `the API server answered with 403: ${[...new Set(forbidden)].join(", ")}` };
}

function undestroyed({ runs, changes }: Outcome): Failure | undefined {
  const gone = Object.keys(changes).flatMap((change) => /^deleted Stack (.+)$/.exec(change)?.[1] ?? []);
  const names = gone.filter((name) => runs[`destroy ${name}`] === undefined);
  return names.length === 0
    ? undefined
    : { kind: "undestroyed", text: `the Stack ${names.join(", ")} went, and its resources stayed` };
}

function otherRuns({ runs: expected }: Outcome, { runs: actual }: Outcome): Failure | undefined {
  const [name] = differing(expected, actual);
  if (name === undefined) return undefined;
  const text = `the program ran ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`;
  return { kind: (actual[name] ?? 0) < (expected[name] ?? 0) ? "lost" : "doubled", text };
}

function otherChanges({ changes: expected }: Outcome, { changes: actual }: Outcome): Failure | undefined {
  const names = differing(expected, actual);
  if (names.length === 0) return undefined;
  const text = names.map((name) => `${name}: ${actual[name] ?? 0} times, not ${expected[name] ?? 0}`).join("; ");
  const update = names.find((name) => name.startsWith("created Update "));
  if (update === undefined) return { kind: "other", text };
  return { kind: (actual[update] ?? 0) < (expected[update] ?? 0) ? "lost" : "doubled", text };
}

function differing(expected: Counts, actual: Counts): string[] {
  const names = new Set([...Object.keys(expected), ...Object.keys(actual)]);
  return [...names].filter((name) => expected[name] !== actual[name]);
}

function otherEnd({ state: expected }: Outcome, { state: actual }: Outcome): Failure | undefined {
  const missing = expected.filter((line) => !actual.includes(line));
  const surplus = actual.filter((line) => !expected.includes(line));
  if (missing.length === 0 && surplus.length === 0) return undefined;
  return { kind: "other", text: `the end is another:\n- ${missing.join("\n- ")}\n+ ${surplus.join("\n+ ")}` };
}
