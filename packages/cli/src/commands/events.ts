/** `events`: the events of a Stack, its Workspace, pod and Updates, the newest last. */
import { podNameOf, workspaceNameOf } from "@pko/api";
import type { ApiObject } from "@pko/kube";
import type { Event } from "kubernetes-types/core/v1";

import { argument, stackArgument, type Command } from "../command.ts";
import { findNamed } from "../context.ts";
import { documentOf, type EventSummary } from "../documents.ts";
import { events, stacks } from "../kinds.ts";
import { text, toned, type Block } from "../output/blocks.ts";
import { relative } from "../output/time.ts";

export const eventsCommand: Command = {
  name: "events",
  summary: "List the events of a Stack and of what belongs to it",
  group: "See",
  args: [stackArgument],
  async run(context, input) {
    const name = argument(input);
    await findNamed(context, stacks, name);
    const { items } = await context.client.list(events, { namespace: context.namespace });
    const summaries = items
      .filter((event) => concerns(event, name))
      .map(summarizeEvent)
      .toSorted(byTime);
    return {
      document: documentOf("EventList", { items: summaries }),
      blocks: eventBlocks(summaries, context.io.now()),
    };
  },
};

/** Updates are named after their Stack, with a hash of twelve digits. */
export function concerns({ involvedObject: { kind = "", name = "" } }: ApiObject<Event>, stack: string): boolean {
  const workspace = workspaceNameOf(stack);
  switch (kind) {
    case "Stack":
      return name === stack;
    case "Workspace":
      return name === workspace;
    case "Pod":
      return name === podNameOf(workspace);
    case "StatefulSet":
      return `${name}-0` === podNameOf(workspace);
    case "Update":
      return name.startsWith(`${stack}-`) && /^[0-9a-f]{12}$/.test(name.slice(stack.length + 1));
    default:
      return false;
  }
}

export function summarizeEvent(event: ApiObject<Event>): EventSummary {
  const { involvedObject, type = "Normal", reason = "", message = "", count = 1 } = event;
  const time = event.lastTimestamp ?? event.firstTimestamp ?? event.metadata.creationTimestamp;
  return {
    ...(time && { time }),
    type,
    reason,
    object: `${involvedObject.kind ?? ""}/${involvedObject.name ?? ""}`,
    count,
    message,
  };
}

const byTime = (a: EventSummary, b: EventSummary): number => (a.time ?? "").localeCompare(b.time ?? "");

export function eventBlocks(items: readonly EventSummary[], now: number): Block[] {
  if (items.length === 0) return [text("There are no events. Kubernetes keeps them for an hour.")];
  const columns = [{ title: "LAST SEEN" }, { title: "OBJECT" }, { title: "REASON" }, { title: "MESSAGE", wraps: true }];
  const rows = items.map(({ time, type, reason, object, count, message }) => [
    relative(time, now),
    object,
    toned(type === "Warning" ? "warning" : "plain", count > 1 ? `${reason} (${count}×)` : reason),
    message,
  ]);
  return [{ kind: "table", columns, rows }];
}
