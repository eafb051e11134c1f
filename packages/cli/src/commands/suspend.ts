/** `suspend` and `resume`. */
import { openShellAnnotation } from "@pko/api";

import { argument, stackArgument, type Command } from "../command.ts";
import { findNamed, type Context } from "../context.ts";
import { stacks } from "../kinds.ts";
import { text } from "../output/blocks.ts";
import { actionReport, fieldManager, patchStack } from "./action.ts";

const gitOpsHint =
  "If a GitOps tool manages the Stack, it may revert this: change spec.suspend in the repository as well.";

export const suspend: Command = {
  name: "suspend",
  summary: "Suspend a Stack: nothing new starts, and a running update finishes",
  group: "Control",
  args: [stackArgument],
  async run(context, input) {
    const name = argument(input);
    const { spec, status, metadata } = await findNamed(context, stacks, name);
    if (!spec.suspend) await patchStack(context, name, { spec: { suspend: true } });
    // Otherwise, the Stack would be resumed when the shell is closed.
    else if (metadata.annotations?.[openShellAnnotation] !== undefined) await shareSuspension(context, name);
    const running = status?.currentUpdate?.name;
    return actionReport(context, {
      action: "suspend",
      name,
      message: spec.suspend ? `Stack ${name} is suspended already.` : `Stack ${name} is suspended.`,
      blocks: [
        ...(running === undefined ? [] : [text(`Update ${running} is running and finishes.`)]),
        text(gitOpsHint),
      ],
    });
  },
};

/** Owns the field, which already has this value, together with the shell: a patch would change nothing. */
async function shareSuspension({ client, namespace }: Context, name: string): Promise<void> {
  const { apiVersion, kind } = stacks;
  const body = { apiVersion, kind, metadata: { name, namespace }, spec: { suspend: true } };
  await client.apply(stacks, body, { fieldManager });
}

export const resume: Command = {
  name: "resume",
  summary: "Resume a suspended Stack",
  group: "Control",
  args: [stackArgument],
  async run(context, input) {
    const name = argument(input);
    const { spec, metadata } = await findNamed(context, stacks, name);
    const isShellOpen = metadata.annotations?.[openShellAnnotation] !== undefined;
    const ended = isShellOpen && { metadata: { annotations: { [openShellAnnotation]: null } } };
    if (spec.suspend || isShellOpen) await patchStack(context, name, { spec: { suspend: false }, ...ended });
    return actionReport(context, {
      action: "resume",
      name,
      message: spec.suspend ? `Stack ${name} is resumed.` : `Stack ${name} is not suspended.`,
      blocks: spec.suspend ? [text(gitOpsHint)] : [],
    });
  },
};
