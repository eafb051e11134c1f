/** What commands that change a Stack share. */
import { timestamp } from "@pko/kube";

import type { Report } from "../command.ts";
import type { Context } from "../context.ts";
import { documentOf } from "../documents.ts";
import { stacks } from "../kinds.ts";
import { text, type Block } from "../output/blocks.ts";

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

const fieldManager = "kubectl-pulumi";

export async function patchStack({ client, namespace }: Context, name: string, body: object): Promise<void> {
  await client.patch(stacks, { namespace, name }, { patch: { type: "merge", body }, fieldManager });
}

export const annotate = async (context: Context, name: string, annotations: Record<string, string>): Promise<void> =>
  await patchStack(context, name, { metadata: { annotations } });

/** A new value for an annotation that requests something: the time, and who asks, so that two requests differ. */
export const requestValue = (now: number): string => `${timestamp(now)} ${crypto.randomUUID().slice(0, 8)}`;
