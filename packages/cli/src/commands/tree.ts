/** `tree`: the resources of a Stack, by parent. */
import { argument, stackArgument, type Command } from "../command.ts";

export const tree: Command = {
  name: "tree",
  summary: "Show the resources of a Stack as a tree",
  details: "The resources are those after the latest recorded run; values are not stored.",
  group: "See",
  args: [stackArgument],
  async run(context, input) {
    const { treeReport } = await import("../runs/tree-report.ts");
    return await treeReport(context, argument(input));
  },
};
