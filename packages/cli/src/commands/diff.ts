/** `diff`: what a preview or a plan would change, what a run changed, or how two runs differ. */
import type { Command } from "../command.ts";
import { usageError } from "../errors.ts";

export const diff: Command = {
  name: "diff",
  summary: "Show what a preview would change, or how two updates differ",
  details:
    "With a Stack, shows what its pending plan or latest preview would change; without arguments, this of all Stacks of the namespace, or with -A of all namespaces. With an Update, shows what it changed. With two Updates, shows how they differ: revision, inputs, changes and outputs.",
  group: "See",
  allNamespaces: "alone",
  args: [
    { name: "stack-or-update", description: "A Stack or an Update.", required: false, completion: "stack-or-run" },
    { name: "update", description: "Another Update, to compare with.", required: false, completion: "run" },
  ],
  async run(context, { args: [first, second] }) {
    if (first !== undefined && context.allNamespaces) {
      throw usageError("--all-namespaces is for diff without arguments.", "Name the namespace with --namespace.");
    }
    const { compareReport, diffReport } = await import("../runs/diff-report.ts");
    return first !== undefined && second !== undefined
      ? await compareReport(context, first, second)
      : await diffReport(context, first);
  },
};
