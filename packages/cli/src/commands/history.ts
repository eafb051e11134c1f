/** `history`: the Updates of a Stack, the newest first. */
import { stackNameLabel, type Update } from "@pko/api";

import { argument, stackArgument, type Command } from "../command.ts";
import { findNamed, type Context } from "../context.ts";
import { documentOf, type UpdateSummary } from "../documents.ts";
import { stacks, updates } from "../kinds.ts";
import { list, section, text, toned, type Block, type Tone } from "../output/blocks.ts";
import { elapsed, relative } from "../output/time.ts";
import { mergeHistory } from "../runs/record-summary.ts";
import { recordsOf } from "../runs/records.ts";
import { byCreation, summarizeUpdate } from "../stacks/summary.ts";
import { hiddenIn, hiddenText, seenValue } from "../visibility.ts";

export const history: Command = {
  name: "history",
  summary: "List the updates of a Stack, the newest first",
  details: "Includes runs whose Update is gone, as long as their records are kept.",
  group: "See",
  args: [stackArgument],
  async run(context, input) {
    const name = argument(input);
    const [records, updates] = await Promise.all([recordsOf(context, name), updatesOf(context, name)]);
    const items = mergeHistory(updates.map(summarizeUpdate), seenValue(records) ?? []);
    // The records of a Stack that was deleted remain for a while.
    if (items.length === 0) await findNamed(context, stacks, name);
    const hidden = hiddenIn(records).map(hiddenText);
    const blocks = historyBlocks(items, context.io.now());
    return {
      document: documentOf("UpdateList", { items }),
      blocks: [...blocks, ...section("Not visible to you", hidden.length > 0 ? [list(hidden)] : [])],
    };
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
  if (items.length === 0) return [text("No Update and no record of this Stack is kept.")];
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
