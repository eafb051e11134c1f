/** Waiting until an object is in a state. */
import { parseDuration, type Stack } from "@pko/api";
import type { KubeObject, Resource } from "@pko/kube";

import { textOption, type Input, type Option } from "../command.ts";
import type { Context } from "../context.ts";
import { CliError, exitCodes, notFound, usageError } from "../errors.ts";
import { stacks } from "../kinds.ts";
import { duration } from "../output/time.ts";
import { followObjects } from "./follow.ts";

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

interface Wait<T> {
  readonly name: string;
  readonly timeoutMs: number;
  /** For the message of a timeout: "the update to finish". */
  readonly what: string;
  readonly isDone: (object: T) => boolean;
}

export const waitForStack = async (context: Context, wait: Wait<Stack>): Promise<Stack> =>
  await waitForObject(context, stacks, { ...wait, stack: wait.name });

/** `stack`: the Stack that explains why it takes so long. */
export async function waitForObject<T extends KubeObject>(
  context: Context,
  resource: Resource<T>,
  wait: Wait<T> & { readonly stack: string },
): Promise<T> {
  const timeout = AbortSignal.timeout(wait.timeoutMs);
  const signal = AbortSignal.any([context.io.signal, timeout]);
  try {
    return await untilDone(context, resource, { ...wait, signal });
  } catch (error) {
    if (context.io.signal.aborted) throw new CliError("Interrupted.", { exitCode: exitCodes.interrupted });
    if (!timeout.aborted) throw error;
    throw new CliError(`Waited ${duration(wait.timeoutMs)} for ${wait.what}.`, {
      fix: `It may still happen. To see why it takes so long: kubectl pulumi why ${wait.stack} -n ${context.namespace}`,
    });
  }
}

/** A pod, and a Stack that a command has just created, may not exist yet; a Stack may be deleted. */
async function untilDone<T extends KubeObject>(
  { client, namespace }: Context,
  resource: Resource<T>,
  { name, isDone, signal }: Wait<T> & { readonly signal: AbortSignal },
): Promise<T> {
  const { kind } = resource;
  const fieldSelector = `metadata.name=${name}`;
  for await (const change of followObjects(client, resource, { namespace, fieldSelector, signal })) {
    const object = change.kind === "list" ? change.items[0] : change.object;
    const isGone = change.kind === "deleted" || object === undefined;
    if (isGone && kind !== "Pod") {
      throw notFound(`There is no ${kind} ${name} in namespace ${namespace}: it may have been deleted.`);
    }
    if (object && !isGone && isDone(object)) return object;
  }
  throw new Error("followObjects does not end");
}
