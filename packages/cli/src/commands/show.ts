/** `show`: one Update in full. */
import type { Update } from "@pko/api";

import { argument, type Command, type Report } from "../command.ts";
import { findNamed } from "../context.ts";
import { documentOf, type UpdateDetail } from "../documents.ts";
import { updates } from "../kinds.ts";
import { fields, section, text, toned, verbatim, type Block, type Field, type Text } from "../output/blocks.ts";
import { absolute, elapsed } from "../output/time.ts";
import { summarizeUpdate } from "../stacks/summary.ts";
import { updateTones } from "./history.ts";

export const show: Command = {
  name: "show",
  summary: "Show one update in full",
  group: "See",
  args: [{ name: "update", description: "The name of the Update.", required: true, completion: "update" }],
  async run(context, input) {
    return showReport(await findNamed(context, updates, argument(input)), context.io.now());
  },
};

export function showReport(update: Update, now: number): Report {
  const { changes, progress, plan, stdout } = update.status ?? {};
  const document = documentOf("UpdateDetail", {
    ...summarizeUpdate(update),
    ...(changes && { changes }),
    ...(progress && { progress }),
    ...(plan && { plan }),
    ...(stdout && { stdout: stdout.text }),
  });
  return { document, blocks: showBlocks(document, update, now) };
}

function showBlocks(detail: UpdateDetail, { status }: Update, now: number): Block[] {
  const shown: [string, Text | undefined][] = [
    ["Update", `${detail.namespace}/${detail.name}`],
    ["Operation", detail.type],
    ["Pulumi stack", detail.stack],
    [
      "Result",
      toned(updateTones[detail.state], detail.errorClass ? `${detail.state} (${detail.errorClass})` : detail.state),
    ],
    ["Ran for", detail.reason],
    ["Revision", detail.revision],
    ["Started", absolute(detail.startTime, now) || undefined],
    ["Took", elapsed(detail.startTime, detail.endTime) || undefined],
    ["Changes", detail.summary],
    ["Progress", progressText(status?.progress)],
    ["Page", detail.permalink],
  ];
  const { stdout, plan, pendingOperations = [] } = status ?? {};
  return [
    fields(shown.flatMap(([label, value]): Field[] => (value ? [[label, value]] : []))),
    ...section("Message", detail.message ? [text(detail.message)] : []),
    ...section("Plan", plan ? [text(plan.summary)] : []),
    ...section(
      "Pending operations",
      pendingOperations.map(({ urn, operation }) => text(`${operation} ${urn}`)),
    ),
    ...section("Output of Pulumi", stdout ? [verbatim(stdout.text), ...truncatedBlocks(stdout.secretName)] : []),
  ];
}

const truncatedBlocks = (secretName: string | undefined): Block[] =>
  secretName === undefined ? [] : [text(`The whole output is in the Secret ${secretName}, key stdout.`)];

function progressText(progress: NonNullable<Update["status"]>["progress"]): string | undefined {
  if (!progress) return undefined;
  const { created, updated, deleted, replaced, unchanged, failed, current, percent } = progress;
  const counts = { created, updated, deleted, replaced, unchanged, failed };
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  const text = parts.map(([what, count]) => `${count} ${what}`).join(", ") || "no resource yet";
  return `${percent === undefined ? "" : `${percent} %: `}${text}${current === undefined ? "" : `; now ${current}`}`;
}
