/** Problems that the user can fix, one line each. */
export class UserError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "UserError";
    this.problems = problems;
  }
}
