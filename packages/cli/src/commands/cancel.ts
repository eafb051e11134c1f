/** `cancel`: stops the running update. */
import { cancellationRequestAnnotation } from "@pko/api";

import { argument, stackArgument, yesOption, type Command } from "../command.ts";
import { confirm } from "../confirm.ts";
import { findNamed } from "../context.ts";
import { CliError } from "../errors.ts";
import { stacks } from "../kinds.ts";
import { actionReport, annotate } from "./action.ts";

export const cancel: Command = {
  name: "cancel",
  summary: "Cancel the running update of a Stack, as with Ctrl-C",
  details: "The update is not retried until something changes or an update is requested.",
  group: "Control",
  args: [stackArgument],
  options: [yesOption],
  async run(context, input) {
    const name = argument(input);
    const { status } = await findNamed(context, stacks, name);
    const update = status?.currentUpdate?.name;
    if (update === undefined) {
      throw new CliError(`No update of Stack ${name} is running, so there is nothing to cancel.`);
    }
    await confirm(context.io, input, `Cancel Update ${update} of Stack ${name}?`);
    await annotate(context, name, { [cancellationRequestAnnotation]: update });
    return actionReport(context, {
      action: "cancel",
      name,
      message: `Requested the cancellation of Update ${update}.`,
      details: { update },
    });
  },
};
