/** What a preview or a plan would change, what a run changed, or how two runs differ. */
import { stackNameLabel, type ApprovalRequest, type Stack, type UpdateRecord } from "@pko/api";
import { builtin, defined } from "@pko/kube";

import type { Report } from "../command.ts";
import type { Context } from "../context.ts";
import { documentOf, type Diff } from "../documents.ts";
import { notFound, permissionText } from "../errors.ts";
import { stacks } from "../kinds.ts";
import { blank, heading, text, toned, type Block } from "../output/blocks.ts";
import { relative } from "../output/time.ts";
import { hiddenIn, look, seenValue, type Hidden, type Seen } from "../visibility.ts";
import { compareRuns, comparisonBlocks, type ComparedRun } from "./compare.ts";
import { allRecords, contentOf, findRecord, isPreview, recordsOf } from "./records.ts";
import { omittedBlocks, resourceBlocks } from "./resource-blocks.ts";
import { isChange, RunLog, withoutStart } from "./run-log.ts";
import { describeRun, findRun, type FoundRun } from "./show-report.ts";
import { visible } from "./tree-report.ts";
import { summarizeRecord } from "./record-summary.ts";

export type DiffItem = Diff["items"][number];

export async function diffReport(context: Context, name: string | undefined): Promise<Report> {
  const items = name === undefined ? await allStacks(context) : [await diffOf(context, name)];
  return { document: documentOf("Diff", { items }), blocks: diffBlocks(items, context.io.now()) };
}

async function allStacks(context: Context): Promise<DiffItem[]> {
  const { client, namespace, allNamespaces } = context;
  const within = allNamespaces ? {} : { namespace };
  const [{ items }, records] = await Promise.all([client.list(stacks, within), allRecords(context)]);
  const found: DiffItem[] = [];
  for (const stack of items) {
    const own = { ...context, namespace: stack.metadata.namespace ?? "" };
    const item = await upcomingChanges(own, stack, recordsIn(records, stack));
    if (item) found.push(item);
  }
  return found;
}

/** Of a Stack, or of an Update. */
async function diffOf(context: Context, name: string): Promise<DiffItem> {
  const { client, namespace } = context;
  const stack = await client.find(stacks, { namespace, name });
  if (!stack) return await runItem(context, name);
  const item = await upcomingChanges(context, stack, await recordsOf(context, name));
  if (item) return item;
  throw notFound(
    `Stack ${name} has no pending plan, and no preview since its last successful update is kept.`,
    `To make one: kubectl pulumi preview ${name} -n ${namespace}`,
  );
}

type Records = Seen<readonly UpdateRecord[]>;

function recordsIn(records: Records, { metadata: { name = "", namespace } }: Stack): Records {
  if (records.kind !== "seen") return records;
  const isOwn = (record: UpdateRecord): boolean =>
    record.metadata.namespace === namespace && record.metadata.labels?.[stackNameLabel] === name;
  return { kind: "seen", value: records.value.filter(isOwn) };
}

/** `records` are those of the Stack. Undefined if nothing is pending and no preview is kept. */
async function upcomingChanges(context: Context, stack: Stack, records: Records): Promise<DiffItem | undefined> {
  const name = stack.metadata.name ?? "";
  const request = stack.status?.approval;
  if (request?.state === "Pending") return await pendingPlan(context, name, request);
  const preview = latestPreview(seenValue(records) ?? []);
  if (preview) return { ...(await itemOf(name, preview)), what: "preview" };
  const last = lastPreview(context.namespace, stack);
  // A preview may be kept in a record that the user may not read.
  if (!last) visible(records);
  return last;
}

/** What an older preview showed was applied, or is outdated. `records` are sorted, the newest first. */
export function latestPreview(records: readonly UpdateRecord[]): UpdateRecord | undefined {
  const latest = records.find(
    (each) => each.record.result === "succeeded" && (each.record.type === "preview" || !isPreview(each)),
  );
  return latest?.record.type === "preview" ? latest : undefined;
}

async function pendingPlan(context: Context, name: string, request: ApprovalRequest): Promise<DiffItem> {
  const { updateName: update, summary } = request;
  const record = seenValue(await findRecord(context, update));
  const item = record && (await itemOf(name, record));
  if (item && item.resources.length > 0) return { ...item, what: "plan" };
  return { namespace: context.namespace, name, update, what: "plan", summary, resources: [] };
}

/** What the status has of it, if there is no record. */
function lastPreview(namespace: string, { metadata, status }: Stack): DiffItem | undefined {
  const { type, summary, stdout, name: update = "" } = status?.lastUpdate ?? {};
  if (type !== "preview" || summary === undefined) return undefined;
  const name = metadata.name ?? "";
  return { namespace, name, update, what: "preview", summary: stdout?.text ?? summary, resources: [] };
}

export async function itemOf(name: string, record: UpdateRecord): Promise<DiffItem> {
  const content = await contentOf(record);
  const { updateName, endTime, revision } = record.record;
  const resources = RunLog.of(content?.events ?? []).resources.map(withoutStart);
  const { summary } = summarizeRecord(record);
  return defined({
    namespace: record.metadata.namespace ?? "",
    name,
    update: updateName,
    what: "run" as const,
    time: endTime,
    revision,
    summary,
    resources: resources.filter(isChange),
    omitted: content?.omitted,
  });
}

async function runItem(context: Context, name: string): Promise<DiffItem> {
  const { update, record } = await findRun(context, name);
  if (record) return await itemOf(record.record.stackName ?? "", record);
  const { summary, stdout, endTime } = update?.status ?? {};
  return defined({
    namespace: context.namespace,
    name: update?.spec?.workspaceName ?? "",
    update: name,
    what: "run" as const,
    time: endTime,
    summary: stdout?.text ?? summary ?? "The Update reports no changes.",
    resources: [],
  });
}

export function diffBlocks(items: readonly DiffItem[], now: number): Block[] {
  if (items.length === 0)
    return [text("No Stack has a pending plan, and no preview since its last successful update is kept.")];
  // The namespace is shown only if it differs.
  const isOne = new Set(items.map(({ namespace }) => namespace)).size === 1;
  const shown = (item: DiffItem): DiffItem => (isOne ? item : { ...item, name: `${item.namespace}/${item.name}` });
  return items.flatMap((item, at) => [...(at === 0 ? [] : [blank]), ...itemBlocks(shown(item), now)]);
}

const titles: Readonly<Record<DiffItem["what"], (item: DiffItem) => string>> = {
  plan: ({ name, update }) => `Stack ${name} waits for an approval of the plan of Update ${update}`,
  preview: ({ name, update }) => `Preview ${update} of Stack ${name}`,
  run: ({ name, update }) => `Update ${update} of Stack ${name}`,
};

function itemBlocks(item: DiffItem, now: number): Block[] {
  const { time, revision, resources, summary } = item;
  const when = [revision && `revision ${revision}`, relative(time, now)].filter(Boolean).join(", ");
  const changes = resources.length > 0 ? resourceBlocks(resources) : [text(summary ?? "It changes nothing.")];
  return [
    heading(titles[item.what](item)),
    ...(when === "" ? [] : [text(toned("muted", when))]),
    blank,
    ...changes,
    ...(resources.length > 0 && summary !== undefined ? [blank, text(summary)] : []),
    ...omittedBlocks(item.omitted),
  ];
}

export async function compareReport(context: Context, first: string, second: string): Promise<Report> {
  const [from, to] = await Promise.all([comparedRun(context, first), comparedRun(context, second)]);
  const hidden = [...from.hidden, ...to.hidden];
  const document = documentOf("Comparison", {
    namespace: context.namespace,
    from: first,
    to: second,
    ...compareRuns(from, to),
    hidden: hidden.map(({ what, permission }) => ({ what, permission: permissionText(permission) })),
  });
  return { document, blocks: comparisonBlocks(document) };
}

async function comparedRun(context: Context, name: string): Promise<ComparedRun & { hidden: readonly Hidden[] }> {
  const run = await findRun(context, name);
  const detail = await describeRun(run);
  const content = run.record && (await contentOf(run.record));
  const outputs = await outputNames(context, run);
  return {
    detail,
    resources: (content?.resources ?? []).map(({ urn }) => urn),
    ...(outputs.names && { outputs: outputs.names }),
    hidden: [...run.hidden, ...outputs.hidden],
  };
}

/** The keys of the Secret with the outputs, which exists as long as the Update. */
async function outputNames({ client, namespace }: Context, { update }: FoundRun) {
  const name = update?.status?.outputs;
  if (name === undefined) return { hidden: [] };
  const seen = await look("the names of the outputs", client.get(builtin.secrets, { namespace, name }));
  const secret = seenValue(seen);
  return { ...(secret && { names: Object.keys(secret.data ?? {}) }), hidden: hiddenIn(seen) };
}
