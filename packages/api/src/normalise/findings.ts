/** Problems and advice as data: a spec that cannot be carried out is an expected outcome, not an exception. */
import { sentence, type Wording } from "../schema/cel.ts";

export interface Problem extends Wording {
  /** The path of the field to blame, such as spec.envRefs.TOKEN.type. */
  readonly field: string;
}

/** The same form for what works, but not as its author may think. */
type Advice = Problem;

export type Normalised<T> =
  | { readonly ok: true; readonly value: T; readonly advice: readonly Advice[] }
  | { readonly ok: false; readonly problems: readonly [Problem, ...Problem[]]; readonly advice: readonly Advice[] };

/** Collects what the parts of a normaliser find. */
export class Findings {
  private readonly problems: Problem[] = [];
  private readonly advice: Advice[] = [];
  /** What `kubectl explain` calls the object. */
  readonly kind: string;

  constructor(kind: string) {
    this.kind = kind;
  }

  problem(field: string, { message, remedy }: Wording): void {
    this.problems.push({ field, message, remedy });
  }

  advise(field: string, { message, remedy }: Wording): void {
    this.advice.push({ field, message, remedy });
  }

  /** The outcome: `value`, unless there are problems. A value that could not be computed is one. */
  outcome<T>(value: T | undefined): Normalised<T> {
    const { advice } = this;
    const [first, ...others] = this.problems;
    if (first) return { ok: false, problems: [first, ...others], advice };
    if (value === undefined) return { ok: false, problems: [incomprehensible], advice };
    return { ok: true, value, advice };
  }
}

const incomprehensible: Problem = {
  field: "spec",
  message: "cannot be understood",
  remedy: "compare it with the docs",
};

const mostTold = 20;
/** A condition's message holds 32,768 characters, and users' own keys may be long. */
const longestTold = 8000;

/** For a condition or an event: one line for each problem, within bounds. */
export function describeProblems(problems: readonly Problem[]): string {
  const lines = problems.slice(0, mostTold).map((problem) => `${problem.field}: ${sentence(problem)}`);
  if (problems.length > mostTold) lines.push(`and ${problems.length - mostTold} more`);
  const told = lines.join("\n");
  return told.length > longestTold ? `${told.slice(0, longestTold)}…` : told;
}
