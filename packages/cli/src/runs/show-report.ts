/** Everything that is known about one run. */
import type { Update, UpdateRecord } from "@pko/api";
import { defined } from "@pko/kube";

import type { Report } from "../command.ts";
import type { Context } from "../context.ts";
import { updateTones } from "../commands/history.ts";
import { documentOf, type UpdateDetail } from "../documents.ts";
import { notFound } from "../errors.ts";
import { updates } from "../kinds.ts";
import { fields, list, section, text, toned, verbatim, type Block, type Field, type Text } from "../output/blocks.ts";
import { absolute, elapsed } from "../output/time.ts";
import { summarizeUpdate } from "../stacks/summary.ts";
import { hiddenIn, hiddenText, seenValue, type Hidden } from "../visibility.ts";
import { summarizeRecord } from "./record-summary.ts";
import { contentOf, findRecord } from "./records.ts";
import { diagnosticBlocks, omittedBlocks, resourceBlocks } from "./resource-blocks.ts";
import { RunLog, withoutStart } from "./run-log.ts";

export interface FoundRun {
  readonly update?: Update;
  readonly record?: UpdateRecord;
  readonly hidden: readonly Hidden[];
}

/** By the name of the Update. */
export async function findRun(context: Pick<Context, "client" | "namespace">, name: string): Promise<FoundRun> {
  const { client, namespace } = context;
  const [update, seen] = await Promise.all([client.find(updates, { namespace, name }), findRecord(context, name)]);
  const record = seenValue(seen);
  if (!update && !record) {
    const fix = `To list them: kubectl get updates,updaterecords --namespace ${namespace}. For another namespace, use -n.`;
    throw notFound(`There is no Update ${name} in namespace ${namespace}, and no record of one.`, fix);
  }
  return { ...(update && { update }), ...(record && { record }), hidden: hiddenIn(seen) };
}

export async function showReport(run: FoundRun, now: number): Promise<Report> {
  const document = await describeRun(run);
  return { document, blocks: showBlocks(document, run, now) };
}

/** What the Update reports counts, where both know it. */
export async function describeRun({ update, record }: FoundRun): Promise<UpdateDetail> {
  const recorded = record && summarizeRecord(record);
  const summary = update ? { ...withoutFlag(recorded), ...summarizeUpdate(update) } : recorded;
  if (!summary) throw new Error("a run has an Update or a record");
  const kept = record && (await describeRecord(record));
  return documentOf("UpdateDetail", { ...summary, ...kept, ...describeStatus(update?.status) });
}

function describeStatus({ changes, progress, plan, stdout }: NonNullable<Update["status"]> = {}) {
  return defined({ changes, progress, plan, stdout: stdout?.text });
}

async function describeRecord(object: UpdateRecord) {
  const { changes, trigger, approval, versions, inputs, omitted } = object.record;
  const content = await contentOf(object);
  const log = content && RunLog.of(content.events);
  return defined({
    changes,
    trigger,
    approvedBy: approval?.decidedBy,
    approval,
    versions,
    inputs,
    resources: log?.resources.map(withoutStart),
    diagnostics: log && [...log.diagnostics],
    omitted: omitted ?? content?.omitted,
  });
}

function withoutFlag<T extends { readonly recorded?: boolean }>(summary: T | undefined): Omit<T, "recorded"> {
  if (!summary) return {} as Omit<T, "recorded">;
  const { recorded: _, ...rest } = summary;
  return rest;
}

function showBlocks(detail: UpdateDetail, run: FoundRun, now: number): Block[] {
  const { stdout, plan, pendingOperations = [] } = run.update?.status ?? {};
  return [
    fields(fieldsOf(detail, run, now).flatMap(([label, value]): Field[] => (value ? [[label, value]] : []))),
    ...section("Message", detail.message ? [text(detail.message)] : []),
    ...section("Resources", resourceBlocks(detail.resources ?? [])),
    ...section("Diagnostics", diagnosticBlocks(detail.diagnostics ?? [])),
    ...section("Plan", plan ? [text(plan.summary)] : []),
    ...section(
      "Pending operations",
      pendingOperations.map(({ urn, operation }) => text(`${operation} ${urn}`)),
    ),
    ...section("Output of Pulumi", stdout ? [verbatim(stdout.text), ...truncatedBlocks(stdout.secretName)] : []),
    ...section("Inputs", inputBlocks(detail)),
    ...section("Not in the record", omittedBlocks(detail.omitted)),
    ...section("Not visible to you", run.hidden.length > 0 ? [list(run.hidden.map(hiddenText))] : []),
  ];
}

function fieldsOf(detail: UpdateDetail, { update }: FoundRun, now: number): [string, Text | undefined][] {
  const result = detail.errorClass ? `${detail.state} (${detail.errorClass})` : detail.state;
  return [
    ["Update", `${detail.namespace}/${detail.name}${detail.recorded ? " (only its record is kept)" : ""}`],
    ["Operation", detail.type],
    ["Pulumi stack", detail.stack],
    ["Result", toned(updateTones[detail.state], result)],
    ["Ran for", detail.reason],
    ["Revision", detail.revision],
    ["Approved", approvalText(detail, now)],
    ["Started", absolute(detail.startTime, now) || undefined],
    ["Took", elapsed(detail.startTime, detail.endTime) || undefined],
    ["Changes", detail.summary],
    ["Progress", progressText(update?.status?.progress)],
    ["Versions", versionsText(detail.versions)],
    ["Page", detail.permalink],
  ];
}

type Approval = NonNullable<UpdateRecord["record"]["approval"]>;

function approvalText(detail: UpdateDetail, now: number): string | undefined {
  const approval = detail.approval as Approval | undefined;
  if (!approval) return undefined;
  const { decidedBy, time, reason, approvalName } = approval;
  const parts = [`by ${decidedBy}`, absolute(time, now), reason && `"${reason}"`, `(Approval ${approvalName})`];
  return parts.filter(Boolean).join(" ");
}

const versionsText = (versions: UpdateDetail["versions"] = {}): string =>
  Object.entries(versions)
    .map(([name, version]) => `${name} ${version}`)
    .join(", ");

const inputBlocks = ({ inputs = {} }: UpdateDetail): Block[] =>
  Object.keys(inputs).length === 0 ? [] : [fields(Object.entries(inputs))];

const truncatedBlocks = (secretName: string | undefined): Block[] =>
  secretName === undefined ? [] : [text(`The whole output is in the Secret ${secretName}, key stdout.`)];

export function progressText(progress: NonNullable<Update["status"]>["progress"]): string | undefined {
  if (!progress) return undefined;
  const { created, updated, deleted, replaced, unchanged, failed, current, percent } = progress;
  const counts = { created, updated, deleted, replaced, unchanged, failed };
  const parts = Object.entries(counts).filter(([, count]) => count > 0);
  const counted = parts.map(([what, count]) => `${count} ${what}`).join(", ") || "no resource yet";
  return `${percent === undefined ? "" : `${percent} %: `}${counted}${current === undefined ? "" : `; now ${current}`}`;
}
