/** The record of a run, which its Update owns: what is worth knowing when the run's pod no longer exists. Pure. */
import {
  recordSizeAnnotation,
  stackKind,
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

import { ownerReference } from "../../shared/objects/owner-reference.ts";
import { truncate } from "../../shared/truncate.ts";
import type { Ending } from "../outcome.ts";
import { resultText } from "../result-text.ts";
import { runEndTime } from "../status.ts";
import type { UpdateView } from "../view.ts";

/** A record has at most 64 KiB. The API server adds managed fields and other metadata to what is sent. */
const maxSentBytes = 61 * 1024;
/** What a record keeps besides its events. The next of these applies if the record is too large with the one before. */
const allowances = [
  { message: 8192, other: 1024, labels: true },
  { message: 2048, other: 1024, labels: true },
  { message: 512, other: 256, labels: false },
] as const;
type Allowance = (typeof allowances)[number];

/** `read`: what the agent returned; absent if the run or the agent has no record. */
export function updateRecord(view: UpdateView, ending: Ending, read?: RecordResult): UpdateRecord {
  for (const allowance of allowances) {
    const fields = { ...recordFields(view, ending, allowance), ...contentFields(read) };
    const record = recordObject(view.update, fields, allowance);
    if (sizeOf(record) <= maxSentBytes) return record;
  }
  // Only a summary with thousands of kinds of changes leaves no room for the events.
  const { changes: _, ...fields } = recordFields(view, ending, smallest);
  return recordObject(view.update, fields, smallest);
}

const [, , smallest] = allowances;

const sizeOf = (record: UpdateRecord): number => Number(record.metadata.annotations?.[recordSizeAnnotation]);

/** The size is part of the object. */
function recordObject(
  { metadata }: Update,
  record: UpdateRecordContent,
  allowance: Pick<Allowance, "labels">,
): UpdateRecord {
  const { name = "", namespace = "", labels } = metadata;
  const object = (annotations: Record<string, string>): UpdateRecord => ({
    apiVersion: updateRecordKind.apiVersion,
    kind: updateRecordKind.kind,
    metadata: {
      name,
      namespace,
      ...(labels && allowance.labels && { labels }),
      annotations,
      ownerReferences: [ownerReference({ ...updateKind, metadata }, { controller: true, blockOwnerDeletion: true })],
    },
    record,
  });
  const bytes = Buffer.byteLength(JSON.stringify(object({ [recordSizeAnnotation]: "00000" })));
  return object({ [recordSizeAnnotation]: String(bytes) });
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
      trigger: limited(metadata.annotations?.[triggerReasonAnnotation], limits.other),
      message: limited(messageOf(ending), limits.message),
      approval: approvalOf(view, limits),
    }),
    ...resultFields(view, ending),
  };
}

function resultFields(view: UpdateView, { result }: Ending): Partial<UpdateRecordContent> {
  const { status } = view.update;
  const { changes = {}, error } = result ?? {};
  return defined({
    projectName: (result?.project ?? status?.projectInfo ?? view.project)?.name,
    revision: result?.revision || undefined,
    errorClass: error?.class,
    changes: Object.keys(changes).length > 0 ? changes : undefined,
    permalink: result?.progress.permalink ?? status?.permalink,
  });
}

function contentFields(read: RecordResult | undefined): Partial<UpdateRecordContent> {
  if (!read) return {};
  const { content, omitted, versions, inputs } = read;
  return {
    content,
    omitted,
    versions: { ...versions, operator: version },
    ...(Object.keys(inputs).length > 0 && { inputs }),
  };
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
    ...defined({ time: metadata.creationTimestamp || undefined, reason: limited(spec.reason, limits.other) }),
  };
}

const limited = (text: string | undefined, limit: number): string | undefined =>
  text === undefined ? undefined : truncate(text, limit);
