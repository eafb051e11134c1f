/** `completion`: prints a completion script. */
import { argument, type Command, type Input } from "../command.ts";
import { scripts, shells, type Shell } from "../completion/scripts.ts";
import { usageError } from "../errors.ts";
import type { Io } from "../io.ts";

const isShell = (name: string): name is Shell => shells.some((shell) => shell === name);

async function printScript(io: Io, input: Input): Promise<undefined> {
  const shell = argument(input);
  if (!isShell(shell)) throw usageError(`"${shell}" is not a supported shell.`, `Use one of ${shells.join(", ")}.`);
  io.out(scripts[shell]);
  return undefined;
}

export const completion: Command = {
  name: "completion",
  summary: "Print the completion script for a shell",
  details:
    "bash, zsh and fish complete the program kubectl-pulumi. To complete `kubectl pulumi`, save the output of `completion kubectl` as the executable kubectl_complete-pulumi in a directory of PATH.",
  group: "Administer",
  args: [{ name: "shell", description: "bash, zsh, fish or kubectl.", required: true, completion: shells }],
  isLocal: () => true,
  runLocally: printScript,
  run: async ({ io }, input) => await printScript(io, input),
};
