/** `reconcile`: requests an update. */
import { reconcileRequestAnnotation, type Stack } from "@pko/api";

import { flag, stackArgument, type Command } from "../command.ts";
import { exitCodes } from "../errors.ts";
import { blank } from "../output/blocks.ts";
import { conditionOf, stateOf } from "../stacks/summary.ts";
import { waitForStack, waitOptions } from "../stacks/wait.ts";
import { actionReport, request } from "./action.ts";
import { describeStack, detailReport } from "./get.ts";

export const reconcile: Command = {
  name: "reconcile",
  summary: "Request an update of a Stack now",
  group: "Control",
  args: [stackArgument],
  options: waitOptions,
  async run(context, input) {
    const { name, timeoutMs, value } = await request(context, input, reconcileRequestAnnotation);
    const action = { action: "reconcile", name, message: `Requested an update of Stack ${name}.` };
    if (!flag(input, "wait")) return actionReport(context, { ...action, details: { request: value } });
    const isDone = (stack: Stack): boolean => hasResult(stack, value);
    const stack = await waitForStack(context, { name, timeoutMs, what: "the result of the update", isDone });
    const hasFailed = stateOf(stack) === "Failing";
    return actionReport(context, {
      ...action,
      message: hasFailed ? `The update of Stack ${name} failed.` : `Stack ${name} has processed the request.`,
      details: { request: value, stack: describeStack(stack) },
      blocks: [blank, ...detailReport(stack, context.io.now()).blocks],
      exitCode: hasFailed ? exitCodes.failure : exitCodes.success,
    });
  },
};

/** The update of the request has ended, or something is in the way of it. */
export function hasResult({ status, ...stack }: Stack, request: string): boolean {
  if (status?.observedReconcileRequest !== request) return false;
  if (conditionOf({ status }, "Stalled")?.status === "True") return true;
  if (stateOf({ ...stack, status }) === "Waiting") return true;
  return status.lastUpdate?.reconcileRequest === request && status.currentUpdate === undefined;
}
