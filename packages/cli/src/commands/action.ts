/** What commands that change a Stack share. */
import { timestamp } from "@pko/kube";

import { argument, type Input, type Report } from "../command.ts";
import { findNamed, type Context } from "../context.ts";
import { documentOf } from "../documents.ts";
import { stacks } from "../kinds.ts";
import { text, type Block } from "../output/blocks.ts";
import { timeoutIn } from "../stacks/wait.ts";

interface Done {
  readonly action: string;
  readonly name: string;
  readonly message: string;
  readonly details?: Record<string, unknown>;
  /** More than the message, for people. */
  readonly blocks?: readonly Block[];
  readonly exitCode?: number;
}

export function actionReport({ namespace }: Pick<Context, "namespace">, done: Done): Report {
  const { action, name, message, details, blocks = [], exitCode } = done;
  return {
    document: documentOf("ActionResult", { action, namespace, name, message, ...(details && { details }) }),
    blocks: [text(message), ...blocks],
    ...(exitCode !== undefined && { exitCode }),
  };
}

export const fieldManager = "kubectl-pulumi";

export async function patchStack({ client, namespace }: Context, name: string, body: object): Promise<void> {
  await client.patch(stacks, { namespace, name }, { patch: { type: "merge", body }, fieldManager });
}

export const annotate = async (context: Context, name: string, annotations: Record<string, string>): Promise<void> =>
  await patchStack(context, name, { metadata: { annotations } });

/** Requests something of the Stack that the input names, by a new value of an annotation. */
export async function request(
  context: Context,
  input: Input,
  annotation: string,
): Promise<{ readonly name: string; readonly timeoutMs: number; readonly value: string }> {
  const name = argument(input);
  const timeoutMs = timeoutIn(input);
  await findNamed(context, stacks, name);
  const value = requestValue(context.io.now());
  await annotate(context, name, { [annotation]: value });
  return { name, timeoutMs, value };
}

/** A new value for an annotation that requests something: the time, and who asks, so that two requests differ. */
const requestValue = (now: number): string => `${timestamp(now)} ${crypto.randomUUID().slice(0, 8)}`;
