/** `unlock`: removes the lock that a dead update has left in the backend. */
import { isComplete, podNameOf, pulumiContainer, workspaceNameOf, type Stack, type Update } from "@pko/api";
import { builtin, execInPod } from "@pko/kube";

import { argument, stackArgument, yesOption, type Command } from "../command.ts";
import { confirm } from "../confirm.ts";
import { findNamed } from "../context.ts";
import { CliError } from "../errors.ts";
import { stacks } from "../kinds.ts";
import { blank, heading, text, toned, verbatim, type Block } from "../output/blocks.ts";
import { render } from "../output/render.ts";
import { actionReport } from "./action.ts";
import { updatesOf } from "./history.ts";

export const unlock: Command = {
  name: "unlock",
  summary: "Remove the lock of a Stack's Pulumi stack after confirmation",
  details:
    "Runs `pulumi cancel` in the workspace pod, for which you need permission to create pods/exec. Do this only if no other update of the Pulumi stack runs, in any cluster, pipeline or terminal.",
  group: "Control",
  args: [stackArgument],
  options: [yesOption],
  async run(context, input) {
    const name = argument(input);
    const { io, client, namespace, credentials } = context;
    const stack = await findNamed(context, stacks, name);
    assertNothingRuns(stack, await updatesOf(context, name));
    const ref = { namespace, name: podNameOf(workspaceNameOf(name)) };
    if (!(await client.find(builtin.pods, ref))) {
      const fix = `Request an update, which wakes it: kubectl pulumi reconcile ${name} -n ${namespace}`;
      throw new CliError(`The workspace of Stack ${name} is idle and has no pod.`, { fix });
    }
    io.err(render(holderBlocks(stack), { width: io.width, color: io.color }));
    await confirm(io, input, `Remove the lock of the Pulumi stack ${stack.spec.stack}?`);
    const command = ["pulumi", "cancel", "--yes", "--stack", stack.spec.stack];
    const { exitCode, stdout, stderr } = await execInPod(credentials, ref, { container: pulumiContainer, command });
    const output = `${stdout}${stderr}`.trim();
    if (exitCode !== 0) throw new CliError(`pulumi cancel failed with exit code ${exitCode}: ${output}`);
    return actionReport(context, {
      action: "unlock",
      name,
      message: `Removed the lock of the Pulumi stack ${stack.spec.stack}.`,
      details: { output },
      blocks: output === "" ? [] : [blank, verbatim(output)],
    });
  },
};

/** A run of the operator holds its lock rightly. */
export function assertNothingRuns({ metadata }: Pick<Stack, "metadata">, updates: readonly Update[]): void {
  const { name = "", namespace = "" } = metadata;
  const running = updates.find((update) => update.status?.startTime !== undefined && !isComplete(update));
  if (!running) return;
  throw new CliError(`Update ${running.metadata.name ?? ""} of Stack ${name} is running and holds the lock.`, {
    fix: `Wait for it, or cancel it: kubectl pulumi cancel ${name} -n ${namespace}`,
  });
}

export function holderBlocks({ spec, status }: Pick<Stack, "spec" | "status">): Block[] {
  const { failure, message } = status?.lastUpdate ?? {};
  const report =
    failure === "conflict" && message !== undefined
      ? [text("Pulumi reports about the holder of the lock:"), verbatim(message)]
      : [text("The last update of this Stack reported no lock.")];
  return [
    heading(`Lock of the Pulumi stack ${spec.stack}`),
    ...report,
    text(
      toned(
        "warning",
        "If the other update still runs, two updates run at once after this, and the state can be damaged.",
      ),
    ),
    blank,
  ];
}
