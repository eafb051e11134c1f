/** `preview`: what a branch, a tag or a commit would change. */
import { stackArgument, type Command } from "../command.ts";

export const preview: Command = {
  name: "preview",
  summary: "Preview what a Stack, or another branch, tag or commit of it, would change",
  details:
    "Creates a child Stack with preview: true, waits for its preview, shows the changes and deletes it. The child never changes resources or state, needs no approval, and waits for no update window. You need permission to create and delete Stacks.",
  group: "See",
  args: [stackArgument],
  options: [
    { flags: "--ref <ref>", description: "A branch, a tag (refs/tags/NAME) or the full hash of a commit." },
    { flags: "--timeout <duration>", description: "How long to wait for the preview. By default 10m." },
  ],
  async run(context, input) {
    const { previewStack } = await import("../preview/preview-stack.ts");
    return await previewStack(context, input);
  },
};
