/** `drift`: requests a drift check. */
import { driftRequestAnnotation, type Stack } from "@pko/api";

import { flag, stackArgument, type Command } from "../command.ts";
import { exitCodes } from "../errors.ts";
import { blank } from "../output/blocks.ts";
import { conditionOf } from "../stacks/summary.ts";
import { waitForStack, waitOptions } from "../stacks/wait.ts";
import { actionReport, request } from "./action.ts";
import { describeStack, driftBlocks } from "./get.ts";

export const drift: Command = {
  name: "drift",
  summary: "Request a drift check, which changes nothing",
  details: "With --wait, shows the result and exits with 1 if there is drift.",
  group: "Control",
  args: [stackArgument],
  options: waitOptions,
  async run(context, input) {
    const { name, timeoutMs, value } = await request(context, input, driftRequestAnnotation);
    const action = { action: "drift", name, message: `Requested a check of Stack ${name} for drift.` };
    if (!flag(input, "wait")) return actionReport(context, { ...action, details: { request: value } });
    const isDone = ({ status }: Stack): boolean => status?.drift?.request === value;
    const stack = await waitForStack(context, { name, timeoutMs, what: "the drift check", isDone });
    const { status, message = "" } = conditionOf(stack, "Drifted") ?? {};
    return actionReport(context, {
      ...action,
      message: message || `Stack ${name} was checked for drift.`,
      details: { request: value, drift: stack.status?.drift },
      blocks: [blank, ...driftBlocks(describeStack(stack), context.io.now())],
      exitCode: status === "False" ? exitCodes.success : exitCodes.failure,
    });
  },
};
