/** Waiting until a Stack is in a state. */
import { parseDuration, type Stack } from "@pko/api";
import { isExpired, isTransient } from "@pko/kube";

import { textOption, type Input, type Option } from "../command.ts";
import type { Context } from "../context.ts";
import { CliError, exitCodes, notFound, usageError } from "../errors.ts";
import { stacks } from "../kinds.ts";
import { duration } from "../output/time.ts";

export const waitOptions: readonly Option[] = [
  { flags: "-w, --wait", description: "Wait for the result and show it." },
  { flags: "--timeout <duration>", description: "How long to wait, such as 90s or 10m. By default 10m." },
];

const defaultTimeoutMs = 600_000;

export function timeoutIn(input: Input): number {
  const text = textOption(input, "timeout");
  if (text === undefined) return defaultTimeoutMs;
  const ms = parseDuration(text);
  if (ms === undefined || ms <= 0) {
    throw usageError(`--timeout: "${text}" is not a duration.`, "Use numbers with units, such as 90s or 10m.");
  }
  return ms;
}

interface Wait {
  readonly name: string;
  readonly timeoutMs: number;
  /** For the message of a timeout: "the update to finish". */
  readonly what: string;
  readonly isDone: (stack: Stack) => boolean;
}

export async function waitForStack(context: Context, wait: Wait): Promise<Stack> {
  const timeout = AbortSignal.timeout(wait.timeoutMs);
  const signal = AbortSignal.any([context.io.signal, timeout]);
  try {
    for (;;) {
      const stack = await followStack(context, wait, signal);
      if (stack) return stack;
    }
  } catch (error) {
    if (context.io.signal.aborted) throw new CliError("Interrupted.", { exitCode: exitCodes.interrupted });
    if (!timeout.aborted) throw error;
    throw new CliError(`Waited ${duration(wait.timeoutMs)} for ${wait.what}.`, {
      fix: `It may still happen. To see why it takes so long: kubectl pulumi why ${wait.name} -n ${context.namespace}`,
    });
  }
}

/** Undefined if the watch ends before the Stack is in the state. */
async function followStack(
  { client, namespace }: Context,
  { name, isDone }: Wait,
  signal: AbortSignal,
): Promise<Stack | undefined> {
  const fieldSelector = `metadata.name=${name}`;
  const { items, resourceVersion } = await client.list(stacks, { namespace, fieldSelector, signal });
  const [stack] = items;
  if (!stack) throw notFound(`There is no Stack ${name} in namespace ${namespace}: it may have been deleted.`);
  if (isDone(stack)) return stack;
  try {
    for await (const event of client.watch(stacks, { namespace, fieldSelector, resourceVersion, signal })) {
      if (event.type === "BOOKMARK") continue;
      if (event.type === "DELETED") throw notFound(`The Stack ${name} was deleted.`);
      if (isDone(event.object)) return event.object;
    }
  } catch (error) {
    if (!isExpired(error) && !isTransient(error)) throw error;
  }
  return undefined;
}
