/** `show`: one run in full, from its Update and its record. */
import { argument, type Command } from "../command.ts";

export const show: Command = {
  name: "show",
  summary: "Show one update in full",
  details:
    "Shows the resources with their changed properties, diagnostics, trigger, approval and versions from the record of the run, even if the Update itself is gone.",
  group: "See",
  args: [{ name: "update", description: "The name of the Update.", required: true, completion: "run" }],
  async run(context, input) {
    const { findRun, showReport } = await import("../runs/show-report.ts");
    return await showReport(await findRun(context, argument(input)), context.io.now());
  },
};
