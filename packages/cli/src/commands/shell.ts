/** `shell`: break glass. Opens a shell in the workspace of a suspended Stack. */
import { stackArgument, yesOption, type Command } from "../command.ts";

export const shell: Command = {
  name: "shell",
  summary: "Break glass: open a shell in the workspace, with the stack selected",
  details:
    "Suspends the Stack, so that nothing runs at the same time, wakes its workspace, and opens a shell in which Pulumi commands work. Who opened it is recorded in the annotation pulumi.com/last-shell of the Stack and in an event. At the end, a refresh brings the state up to date, and the Stack is resumed, unless it was suspended before. You need permission to patch the Stack and its Workspace, to create Updates, and to create pods/exec.",
  group: "Control",
  args: [stackArgument],
  options: [
    yesOption,
    { flags: "--no-refresh", description: "Do not refresh the state at the end." },
    { flags: "--for <duration>", description: "How long the pod is kept at most, up to 8h. By default 1h." },
    { flags: "--timeout <duration>", description: "How long to wait for the pod and for the refresh. By default 10m." },
  ],
  async run(context, input) {
    const { openShell } = await import("../shell/open-shell.ts");
    return await openShell(context, input);
  },
};
