/** Requests a preview with a child Stack, waits for it, shows it, and deletes the child. */
import type { Stack } from "@pko/api";
import { isNotFound } from "@pko/kube";

import { argument, textOption, type Input, type Report } from "../command.ts";
import { findNamed, type Context } from "../context.ts";
import { documentOf } from "../documents.ts";
import { CliError } from "../errors.ts";
import { stacks } from "../kinds.ts";
import { diffBlocks, itemOf, type DiffItem } from "../runs/diff-report.ts";
import { findRecord } from "../runs/records.ts";
import { decidingCondition, stateOf } from "../stacks/summary.ts";
import { timeoutIn, waitForStack } from "../stacks/wait.ts";
import { seenValue } from "../visibility.ts";
import { childStack } from "./child-stack.ts";

export async function previewStack(context: Context, input: Input): Promise<Report> {
  const name = argument(input);
  const { client, io } = context;
  const timeoutMs = timeoutIn(input);
  const parent = await findNamed(context, stacks, name);
  const suffix = crypto.randomUUID().slice(0, 5);
  const child = childStack(parent, textOption(input, "ref"), suffix);
  const created = await client.create(stacks, child, { fieldValidation: "Strict" });
  const childName = created.metadata.name ?? "";
  io.err(`Previewing with the Stack ${childName}, which is deleted afterwards.\n`);
  try {
    const done = await waitForStack(context, { name: childName, timeoutMs, what: "the preview", isDone: hasPreviewed });
    const item = await previewOf(context, name, done);
    return { document: documentOf("Diff", { items: [item] }), blocks: diffBlocks([item], io.now()) };
  } finally {
    await deleteChild(context, childName);
  }
}

/** The preview has succeeded, or something is in its way. */
export function hasPreviewed(stack: Stack): boolean {
  const state = stateOf(stack);
  const isObserved = (stack.status?.observedGeneration ?? 0) >= (stack.metadata.generation ?? 0);
  return isObserved && (state === "Ready" || state === "Failing");
}

async function previewOf(context: Context, name: string, child: Stack): Promise<DiffItem> {
  const { name: update = "", state, summary, stdout, message } = child.status?.lastUpdate ?? {};
  if (state !== "succeeded") {
    const why = message ?? decidingCondition(child)?.message ?? "";
    throw new CliError(`The preview failed: ${why}`, {
      fix: "Fix the program, its configuration or the ref, and try again.",
    });
  }
  const record = seenValue(await findRecord(context, update));
  const item = record && (await itemOf(name, record));
  if (item && item.resources.length > 0) return { ...item, what: "preview" };
  const text = stdout?.text ?? summary ?? "It changes nothing.";
  return { namespace: context.namespace, name, update, what: "preview", summary: text, resources: [] };
}

async function deleteChild({ client, namespace, io }: Context, name: string): Promise<void> {
  try {
    await client.delete(stacks, { namespace, name });
  } catch (error) {
    if (isNotFound(error)) return;
    io.err(`The Stack ${name} could not be deleted. To delete it: kubectl delete stack ${name} -n ${namespace}\n`);
  }
}
