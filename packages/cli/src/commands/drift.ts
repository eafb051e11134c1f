/** `drift`: requests a check for drift. */
import { driftRequestAnnotation, type Stack } from "@pko/api";

import { argument, flag, stackArgument, type Command } from "../command.ts";
import { findNamed } from "../context.ts";
import { exitCodes } from "../errors.ts";
import { stacks } from "../kinds.ts";
import { blank } from "../output/blocks.ts";
import { conditionOf } from "../stacks/summary.ts";
import { timeoutIn, waitForStack, waitOptions } from "../stacks/wait.ts";
import { actionReport, annotate, requestValue } from "./action.ts";
import { describeStack, driftBlocks } from "./get.ts";

export const drift: Command = {
  name: "drift",
  summary: "Request a check for drift, which changes nothing",
  details: "With --wait, shows the result and exits with 1 if there is drift.",
  group: "Control",
  args: [stackArgument],
  options: waitOptions,
  async run(context, input) {
    const name = argument(input);
    const timeoutMs = timeoutIn(input);
    await findNamed(context, stacks, name);
    const request = requestValue(context.io.now());
    await annotate(context, name, { [driftRequestAnnotation]: request });
    const action = { action: "drift", name, message: `Requested a check of Stack ${name} for drift.` };
    if (!flag(input, "wait")) return actionReport(context, { ...action, details: { request } });
    const isDone = ({ status }: Stack): boolean => status?.drift?.request === request;
    const stack = await waitForStack(context, { name, timeoutMs, what: "the check for drift", isDone });
    const { status, message = "" } = conditionOf(stack, "Drifted") ?? {};
    return actionReport(context, {
      ...action,
      message: message || `Stack ${name} was checked for drift.`,
      details: { request, drift: stack.status?.drift },
      blocks: [blank, ...driftBlocks(describeStack(stack), context.io.now())],
      exitCode: status === "False" ? exitCodes.success : exitCodes.failure,
    });
  },
};
