/** `suspend` and `resume`. */
import { argument, stackArgument, type Command } from "../command.ts";
import { findNamed } from "../context.ts";
import { stacks } from "../kinds.ts";
import { text } from "../output/blocks.ts";
import { actionReport, patchStack } from "./action.ts";

const gitOpsHint =
  "If a GitOps tool manages the Stack, it may revert this: change spec.suspend in the repository as well.";

export const suspend: Command = {
  name: "suspend",
  summary: "Suspend a Stack: nothing new starts, and a running update finishes",
  group: "Control",
  args: [stackArgument],
  async run(context, input) {
    const name = argument(input);
    const { spec, status } = await findNamed(context, stacks, name);
    if (!spec.suspend) await patchStack(context, name, { spec: { suspend: true } });
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

export const resume: Command = {
  name: "resume",
  summary: "Resume a suspended Stack",
  group: "Control",
  args: [stackArgument],
  async run(context, input) {
    const name = argument(input);
    const { spec } = await findNamed(context, stacks, name);
    if (spec.suspend) await patchStack(context, name, { spec: { suspend: false } });
    return actionReport(context, {
      action: "resume",
      name,
      message: spec.suspend ? `Stack ${name} is resumed.` : `Stack ${name} is not suspended.`,
      blocks: spec.suspend ? [text(gitOpsHint)] : [],
    });
  },
};
