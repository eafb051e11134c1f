/** The record of a run, which its Update owns: what is worth knowing when the run's pod no longer exists. Pure. */
import {
  labelsOfStack,
  recordSizeAnnotation,
  stackKind,
  triggerAnnotation,
  triggerReasonAnnotation,
  updateKind,
  updateRecordKind,
  version,
  type Update,
  type UpdateRecord,
  type UpdateRecordContent,
} from "@pko/api";
import { defined } from "@pko/kube";
import type { RecordResult } from "@pko/rpc";

import { parseInputs } from "../../shared/inputs.ts";
import { ownerReference } from "../../shared/objects/owner-reference.ts";
import { truncate, truncateJson } from "../../shared/truncate.ts";
import type { Ending } from "../outcome.ts";
import { resultText } from "../result-text.ts";
import { runEndTime } from "../status.ts";
import type { UpdateView } from "../view.ts";

/** A record has at most 64 KiB. The API server adds managed fields and other metadata to what is sent. */
const maxSentBytes = 61 * 1024;
/** Of the CRD, in characters. */
const maxChars = { message: 8192, other: 1024 } as const;
/** In bytes of JSON: quotes, control characters and letters that are not ASCII need more than one. */
interface Allowance {
  readonly message: number;
  readonly other: number;
  /** Whether it keeps labels by which nobody finds it, the versions of single inputs, and the number of resources by operation. */
  readonly labels: boolean;
  readonly inputs: boolean;
  readonly changes: boolean;
}
const smallest: Allowance = { message: 512, other: 256, labels: false, inputs: false, changes: false };
/** What a record keeps besides its events. The next of these applies if the record is too large with the one before. */
const allowances: readonly Allowance[] = [
  { message: Infinity, other: Infinity, labels: true, inputs: true, changes: true },
  { message: 8192, other: 1024, labels: true, inputs: true, changes: true },
  { message: 2048, other: 1024, labels: true, inputs: true, changes: true },
  { ...smallest, changes: true },
  smallest,
];

/** `read`: what the agent returned; absent if the run or the agent has no record. */
export function updateRecord(view: UpdateView, ending: Ending, read?: RecordResult): UpdateRecord {
  const all = { ...externalInputs(view), ...read?.inputs };
  for (const allowance of allowances) {
    const inputs = allowance.inputs ? all : (read?.inputs ?? {});
    const fields = {
      ...recordFields(view, ending, allowance),
      ...contentFields(read),
      ...omittedField(read, size(all) - size(inputs)),
      ...(size(inputs) > 0 && { inputs }),
    };
    const record = recordObject(view.update, fields, allowance);
    if (sizeOf(record) <= maxSentBytes) return record;
  }
  const fields = recordFields(view, ending, smallest);
  return recordObject(view.update, { ...fields, ...omittedField(read, size(all)) }, smallest);
}

const size = (map: object): number => Object.keys(map).length;

/** What the agent omitted, and inputs that this function did not keep. */
function omittedField(read: RecordResult | undefined, inputs: number): Pick<UpdateRecordContent, "omitted"> {
  if (!read && inputs === 0) return {};
  const byAgent = read?.omitted ?? { events: 0, resources: 0, values: 0 };
  return { omitted: { ...byAgent, ...(inputs > 0 && { inputs }) } };
}

const sizeOf = (record: UpdateRecord): number => Number(record.metadata.annotations?.[recordSizeAnnotation]);

/** The size is part of the object. */
function recordObject({ metadata }: Update, record: UpdateRecordContent, allowance: Allowance): UpdateRecord {
  const { name = "", namespace = "" } = metadata;
  const labels = allowance.labels ? metadata.labels : selectingLabels(metadata.labels);
  const object = (annotations: Record<string, string>): UpdateRecord => ({
    apiVersion: updateRecordKind.apiVersion,
    kind: updateRecordKind.kind,
    metadata: {
      name,
      namespace,
      ...(labels && { labels }),
      annotations,
      ownerReferences: [ownerReference({ ...updateKind, metadata }, { controller: true, blockOwnerDeletion: true })],
    },
    record,
  });
  const bytes = Buffer.byteLength(JSON.stringify(object({ [recordSizeAnnotation]: "00000" })));
  return object({ [recordSizeAnnotation]: String(bytes) });
}

const selecting = Object.keys(labelsOfStack(""));

/** Those by which a record of a Stack is found. */
function selectingLabels(labels: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([label]) => selecting.includes(label)));
}

function recordFields(view: UpdateView, ending: Ending, limits: Allowance): UpdateRecordContent {
  const { update } = view;
  const { metadata, spec, status } = update;
  return {
    updateName: metadata.name ?? "",
    updateUid: metadata.uid ?? "",
    pulumiStack: spec?.stackName ?? "",
    type: operationOf(view, ending),
    result: results[ending.reason],
    startTime: status?.startTime ?? runEndTime(view, ending),
    endTime: runEndTime(view, ending),
    versions: { operator: version },
    ...defined({
      stackName: metadata.ownerReferences?.find(({ kind }) => kind === stackKind.kind)?.name,
      workspaceName: spec?.workspaceName,
      previewOnly: spec?.previewOnly,
      trigger: limited(metadata.annotations?.[triggerReasonAnnotation], "other", limits),
      message: limited(messageOf(ending), "message", limits),
      approval: approvalOf(view, limits),
    }),
    ...resultFields(view, ending, limits),
  };
}

function resultFields(view: UpdateView, { result }: Ending, limits: Allowance): Partial<UpdateRecordContent> {
  const { status } = view.update;
  const { changes = {}, error } = result ?? {};
  return defined({
    projectName: (result?.project ?? status?.projectInfo ?? view.project)?.name,
    revision: result?.revision || undefined,
    errorClass: error?.class,
    changes: limits.changes && Object.keys(changes).length > 0 ? changes : undefined,
    permalink: result?.progress.permalink ?? status?.permalink,
  });
}

function contentFields(read: RecordResult | undefined): Partial<UpdateRecordContent> {
  if (!read) return {};
  const { content, versions } = read;
  return { content, versions: { ...versions, operator: version } };
}

/** The longest version in a record. */
const maxVersionChars = 128;

/** What the agent's digests leave out: values of Secrets, ConfigMaps and outputs, by versions that do not allow guessing them. */
function externalInputs({ update, pod }: UpdateView): Record<string, string> {
  const named = parseInputs(triggerInputs(update.metadata.annotations?.[triggerAnnotation]));
  return {
    ...Object.fromEntries(named.map(([name, used]) => [name, used.slice(0, maxVersionChars)])),
    ...(pod?.referencesHash !== undefined && { podReferences: pod.referencesHash }),
  };
}

/** Of the trigger of a Stack's Update. Updates that a user has created have none. */
function triggerInputs(trigger = "{}"): string {
  try {
    const { inputs } = JSON.parse(trigger) as { inputs?: unknown };
    return typeof inputs === "string" ? inputs : "";
  } catch {
    return "";
  }
}

const results: Readonly<Record<Ending["reason"], UpdateRecordContent["result"]>> = {
  UpdateSucceeded: "succeeded",
  UpdateFailed: "failed",
  Failed: "failed",
  TimedOut: "failed",
  Canceled: "cancelled",
  Aborted: "interrupted",
  Unknown: "interrupted",
};

function operationOf({ spec }: UpdateView, { result }: Ending): UpdateRecordContent["type"] {
  return spec.ok ? spec.value.type : (result?.operation ?? "up");
}

/** Of a success, only what remains to be done, or the drift that was found. */
function messageOf({ reason, message, result }: Ending): string | undefined {
  const isQuiet = reason === "UpdateSucceeded" && !result?.drift;
  return (result && resultText(result)) ?? (isQuiet ? undefined : message);
}

/** The Approval that allowed the run to start: an Approval is used once. */
function approvalOf({ approval, update }: UpdateView, limits: Allowance): UpdateRecordContent["approval"] {
  const used = approval.approvals.find(({ status }) => status?.usedBy?.updateUid === update.metadata.uid);
  if (!used) return undefined;
  const { metadata, spec } = used;
  return {
    approvalName: metadata.name ?? "",
    decidedBy: spec.decidedBy,
    ...defined({ time: metadata.creationTimestamp || undefined, reason: limited(spec.reason, "other", limits) }),
  };
}

function limited(text: string | undefined, kind: keyof typeof maxChars, limits: Allowance): string | undefined {
  return text === undefined ? undefined : truncateJson(truncate(text, maxChars[kind]), limits[kind]);
}
