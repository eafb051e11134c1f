/** Questions before dangerous commands. */
import { flag, type Input } from "./command.ts";
import { CliError, exitCodes } from "./errors.ts";
import type { Io } from "./io.ts";

/** Throws if the user does not agree. */
export async function confirm(io: Io, input: Input, question: string): Promise<void> {
  if (flag(input, "yes")) return;
  if (!io.isInteractive) {
    throw new CliError("This command asks for confirmation, and standard input is not a terminal.", {
      exitCode: exitCodes.notConfirmed,
      fix: "Add --yes if you are certain.",
    });
  }
  const answer = await io.ask(`${question} [y/N] `);
  if (!/^y(es)?$/i.test(answer?.trim() ?? "")) {
    throw new CliError("Not confirmed; nothing was changed.", { exitCode: exitCodes.notConfirmed });
  }
}
