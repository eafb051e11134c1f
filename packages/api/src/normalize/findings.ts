/** Problems and advice as data: an invalid spec is an expected outcome, not an exception. */
import { validationText, type ValidationMessage } from "../schema/cel.ts";

export interface Problem extends ValidationMessage {
  /** The path of the invalid field, such as spec.envRefs.TOKEN.type. */
  readonly field: string;
}

/** For a field that is valid but may not have the intended effect. */
type Advice = Problem;

export type Normalized<T> =
  | { readonly ok: true; readonly value: T; readonly advice: readonly Advice[] }
  | { readonly ok: false; readonly problems: readonly [Problem, ...Problem[]]; readonly advice: readonly Advice[] };

/** Collects the findings of a normalizer's parts. */
export class Findings {
  private readonly problems: Problem[] = [];
  private readonly advice: Advice[] = [];
  /** The name of the kind for `kubectl explain`. */
  readonly kind: string;

  constructor(kind: string) {
    this.kind = kind;
  }

  problem(field: string, { message, remedy }: ValidationMessage): void {
    this.problems.push({ field, message, remedy });
  }

  advise(field: string, { message, remedy }: ValidationMessage): void {
    this.advice.push({ field, message, remedy });
  }

  /** `value`, unless there are problems. A missing value is a problem, too. */
  outcome<T>(value: T | undefined): Normalized<T> {
    const { advice } = this;
    const [first, ...others] = this.problems;
    if (first) return { ok: false, problems: [first, ...others], advice };
    if (value === undefined) return { ok: false, problems: [unknownProblem], advice };
    return { ok: true, value, advice };
  }
}

const unknownProblem: Problem = {
  field: "spec",
  message: "is invalid",
  remedy: "compare it with the documentation",
};

const maxProblems = 20;
/** A condition's message has at most 32,768 characters, and field paths may contain long keys. */
const maxCharacters = 8000;

/** One line for each problem, truncated to fit into a condition or an event. */
export function describeProblems(problems: readonly Problem[]): string {
  const lines = problems.slice(0, maxProblems).map((problem) => `${problem.field}: ${validationText(problem)}`);
  if (problems.length > maxProblems) lines.push(`and ${problems.length - maxProblems} more`);
  const message = lines.join("\n");
  return message.length > maxCharacters ? `${message.slice(0, maxCharacters)}…` : message;
}
