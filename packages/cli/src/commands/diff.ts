/** `diff`: what a preview or a plan would change, what a run changed, or how two runs differ. */
import type { Command } from "../command.ts";

export const diff: Command = {
  name: "diff",
  summary: "Show what a preview would change, or how two updates differ",
  details:
    "With a Stack, shows what its pending plan or latest preview would change; without arguments, this of all Stacks. With an Update, shows what it changed. With two Updates, shows how they differ: revision, inputs, changes and outputs.",
  group: "See",
  args: [
    { name: "stack-or-update", description: "A Stack or an Update.", required: false, completion: "stack" },
    { name: "update", description: "Another Update, to compare with.", required: false, completion: "update" },
  ],
  async run(context, { args: [first, second] }) {
    const { compareReport, diffReport } = await import("../runs/diff-report.ts");
    return first !== undefined && second !== undefined
      ? await compareReport(context, first, second)
      : await diffReport(context, first);
  },
};
