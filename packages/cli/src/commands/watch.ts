/** `watch`: live progress of a run. */
import { stackArgument, type Command } from "../command.ts";

export const watch: Command = {
  name: "watch",
  summary: "Follow the running or the next update of a Stack",
  details:
    "Shows resources with their durations, diagnostics, and at the end the outputs and the result. In a terminal the view is redrawn in place, otherwise there is one line for each event. It reads the log of the workspace pod; without permission to get pods/log it shows the Update's progress. Exits with 1 if the update fails.",
  group: "See",
  args: [stackArgument],
  options: [
    {
      flags: "--timeout <duration>",
      description: "How long to wait for the next update if none is running, such as 90s. By default 10m.",
    },
  ],
  async run(context, input) {
    const { watchStack } = await import("../watch/run-watch.ts");
    return await watchStack(context, input);
  },
};
