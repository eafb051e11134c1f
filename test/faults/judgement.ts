/** Compares the outcome of a phase with the outcome without a crash. Pure. */
import type { Outcome } from "./lifecycle.ts";

/**
 * A missing update, an additional one, a phase that does not end, a Stack that was deleted without a destroy, a request that
 * the operator's roles do not allow, a change that nobody approved, another final state.
 */
export const faults = ["lost", "doubled", "stuck", "undestroyed", "forbidden", "unapproved", "other"] as const;
export type Fault = (typeof faults)[number];

export interface Failure {
  readonly kind: Fault;
  /** One or two lines. */
  readonly text: string;
}

type Counts = Readonly<Record<string, number>>;

/** The first difference. */
export function findDifference(expected: Outcome, actual: Outcome): Failure | undefined {
  return (
    forbidden(actual) ??
    unapproved(actual) ??
    undestroyed(actual) ??
    differentRuns(expected, actual) ??
    differentChanges(expected, actual) ??
    differentState(expected, actual)
  );
}

function forbidden({ forbidden }: Outcome): Failure | undefined {
  if (forbidden.length === 0) return undefined;
  return { kind: "forbidden", text: `requests got the response 403: ${[...new Set(forbidden)].join(", ")}` };
}

function unapproved({ unapproved }: Outcome): Failure | undefined {
  return unapproved.length === 0 ? undefined : { kind: "unapproved", text: unapproved.join("; ") };
}

function undestroyed({ runs, changes }: Outcome): Failure | undefined {
  const deleted = Object.keys(changes).flatMap((change) => /^deleted Stack (.+)$/.exec(change)?.[1] ?? []);
  const names = deleted.filter((name) => runs[`destroy ${name}`] === undefined);
  return names.length === 0
    ? undefined
    : { kind: "undestroyed", text: `the Stack ${names.join(", ")} was deleted without destroying its resources` };
}

function differentRuns({ runs: expected }: Outcome, { runs: actual }: Outcome): Failure | undefined {
  const [name] = differing(expected, actual);
  if (name === undefined) return undefined;
  const text = `the program ran ${JSON.stringify(actual)}, not ${JSON.stringify(expected)}`;
  return { kind: (actual[name] ?? 0) < (expected[name] ?? 0) ? "lost" : "doubled", text };
}

function differentChanges({ changes: expected }: Outcome, { changes: actual }: Outcome): Failure | undefined {
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

function differentState({ state: expected }: Outcome, { state: actual }: Outcome): Failure | undefined {
  const missing = expected.filter((line) => !actual.includes(line));
  const surplus = actual.filter((line) => !expected.includes(line));
  if (missing.length === 0 && surplus.length === 0) return undefined;
  return { kind: "other", text: `the final state differs:\n- ${missing.join("\n- ")}\n+ ${surplus.join("\n+ ")}` };
}
