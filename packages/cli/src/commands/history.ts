/** `history`: the Updates of a Stack, the newest first. */
import { stackNameLabel, type Update } from "@pko/api";

import { argument, stackArgument, type Command } from "../command.ts";
import { findNamed, type Context } from "../context.ts";
import { documentOf, type UpdateSummary } from "../documents.ts";
import { stacks, updates } from "../kinds.ts";
import { text, toned, type Block, type Tone } from "../output/blocks.ts";
import { elapsed, relative } from "../output/time.ts";
import { byCreation, summarizeUpdate } from "../stacks/summary.ts";

export const history: Command = {
  name: "history",
  summary: "List the updates of a Stack, the newest first",
  group: "See",
  args: [stackArgument],
  async run(context, input) {
    const name = argument(input);
    await findNamed(context, stacks, name);
    const items = (await updatesOf(context, name)).map(summarizeUpdate);
    return { document: documentOf("UpdateList", { items }), blocks: historyBlocks(items, context.io.now()) };
  },
};

export async function updatesOf({ client, namespace }: Context, stackName: string): Promise<Update[]> {
  const { items } = await client.list(updates, { namespace, labelSelector: `${stackNameLabel}=${stackName}` });
  return items.toSorted(byCreation);
}

export const updateTones: Readonly<Record<UpdateSummary["state"], Tone>> = {
  waiting: "warning",
  running: "plain",
  succeeded: "good",
  failed: "bad",
};

export function historyBlocks(items: readonly UpdateSummary[], now: number): Block[] {
  if (items.length === 0)
    return [text("No Update of this Stack is kept. Updates are deleted after ttlAfterCompleted.")];
  const columns = [
    { title: "UPDATE" },
    { title: "TYPE" },
    { title: "RESULT" },
    { title: "STARTED" },
    { title: "TOOK" },
    { title: "FOR AND CHANGES", wraps: true },
  ];
  const rows = items.map((update) => [
    update.name,
    update.type,
    toned(updateTones[update.state], update.state),
    relative(update.startTime, now) || "not yet",
    elapsed(update.startTime, update.endTime),
    [update.reason, update.summary ?? (update.state === "failed" ? update.message : undefined)]
      .filter(Boolean)
      .join(": "),
  ]);
  return [{ kind: "table", columns, rows }];
}
