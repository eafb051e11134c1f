/**
 * The records controller: keeps the records of all runs within their budget. It has one key, because the budget is about all
 * records together. An Update outlives a record that is deleted here.
 */
import { autoEvents, updateKind, type AutoEvent } from "@pko/api";
import {
  controller,
  done,
  isConflict,
  isNotFound,
  metricsRegistry,
  requeueAfter,
  watching,
  type Client,
  type Clock,
  type Controller,
  type EventRecorder,
  type KubeObject,
  type Logger,
  type Reflector,
  type Registry,
  type Result,
} from "@pko/kube";

import { updateRecords } from "../kinds.ts";
import { excessRecords } from "./budget.ts";
import { recordDeleted } from "./messages.ts";
import { storedRecord, type StoredRecord } from "./stored-record.ts";

interface RecordsControllerOptions {
  /** Must be fenced: it writes nothing unless this process leads. */
  readonly client: Client;
  /** Of the metadata only, with `trimRecord`. */
  readonly records: Reflector<KubeObject>;
  readonly events: EventRecorder;
  /** Of all records together. */
  readonly maxTotalBytes: number;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

const budgetKey = "budget";
/** In one pass, which has a deadline. */
const maxDeletionsPerPass = 100;
/** The store has the deletions of the last pass by then. */
const nextPassMs = 1_000;

export function recordsController(options: RecordsControllerOptions): Controller {
  const { records, log, clock, metrics = metricsRegistry() } = options;
  const total = totalOf(records);
  const gauge = metrics.gauge({ name: "update_records_bytes", help: "The size of all records of runs together." });
  metrics.onCollect(() => gauge.set({}, total()));
  const limit = metrics.gauge({ name: "update_records_limit_bytes", help: "How large all records together may be." });
  limit.set({}, options.maxTotalBytes);
  const deletions = metrics.counter({
    name: "update_records_deleted_total",
    help: "Records that were deleted because all records together exceeded their budget.",
  });
  return controller({
    name: "records-controller",
    reflector: records,
    predicate: () => false,
    watches: [watching({ reflector: records, map: ({ before, after }) => (after && !before ? [budgetKey] : []) })],
    concurrency: 1,
    metrics,
    ...(log && { log }),
    ...(clock && { clock }),
    async reconcile(_key, { signal }): Promise<Result> {
      if (total() <= options.maxTotalBytes) return done;
      const stored = records.store.list().flatMap((object) => storedRecord(object) ?? []);
      const excess = excessRecords(stored, options.maxTotalBytes);
      for (const record of excess.slice(0, maxDeletionsPerPass)) {
        if (await deleteRecord(options, record, signal)) deletions.increment({});
      }
      return requeueAfter(nextPassMs);
    },
  });
}

/** The sum of the sizes, kept up to date: with many records, adding them up for each new one would take too long. */
function totalOf({ store }: Reflector<KubeObject>): () => number {
  const bytesOf = (object: KubeObject | undefined): number => (object && storedRecord(object)?.bytes) ?? 0;
  let total = store.list().reduce((sum, object) => sum + bytesOf(object), 0);
  store.subscribe(({ before, after }) => (total += bytesOf(after) - bytesOf(before)));
  return () => total;
}

/** Whether it was deleted now. */
async function deleteRecord(
  { client, events, maxTotalBytes }: RecordsControllerOptions,
  record: StoredRecord,
  signal: AbortSignal,
): Promise<boolean> {
  const { name, namespace, uid, updateUid } = record;
  try {
    await client.delete(updateRecords, { namespace, name }, { uid, signal });
  } catch (error) {
    // Anything else, such as a denial, is retried with backoff.
    if (isNotFound(error) || isConflict(error)) return false;
    throw error;
  }
  const reason: AutoEvent = "RecordDeleted";
  const { apiVersion, kind } = updateKind;
  const update = { apiVersion, kind, metadata: { namespace, name, uid: updateUid } };
  events.record(update, { type: autoEvents[reason], reason, message: recordDeleted(maxTotalBytes) });
  return true;
}
