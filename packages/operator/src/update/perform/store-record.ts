/** Stores the record of a run. A failure is reported, and neither fails nor delays the result of the run. */
import type { UpdateRecord } from "@pko/api";
import { ApiError, backoffDelay, isConflict, isTransient, sleep, systemClock, type Clock } from "@pko/kube";

import { updateRecords } from "../../kinds.ts";
import * as messages from "../messages.ts";
import { createOwned, type OwnedWriter } from "./create-owned.ts";

/** Less than a second in all: an admission webhook that always fails for records must not hold back results. */
const maxAttempts = 5;
const backoff = { baseMs: 50, factor: 2, capMs: 400, jitter: 0.2 };

interface RecordWriter extends OwnedWriter {
  readonly clock?: Clock | undefined;
}

/** Why the record was not stored; undefined if it was stored now or before. */
export async function storeRecord(writer: RecordWriter, record: UpdateRecord): Promise<string | undefined> {
  try {
    const occupant = await createPersistently(writer, record);
    return occupant === undefined ? undefined : messages.recordNotStored(messages.recordNameTaken(occupant));
  } catch (error) {
    // Without the API server, the status cannot be written either.
    if (!(error instanceof ApiError)) throw error;
    return messages.recordNotStored(error.explanation);
  }
}

/** Again after an error that may be temporary. An attempt that failed may still have created the record. */
async function createPersistently(writer: RecordWriter, record: UpdateRecord): Promise<string | undefined> {
  for (let failures = 1; failures < maxAttempts; failures++) {
    try {
      return await createOwned(writer, updateRecords, record);
    } catch (error) {
      // A conflict is temporary, too: the API server could not update the quota of the namespace, for example.
      if (!(error instanceof ApiError) || !(isTransient(error) || isConflict(error))) throw error;
      await sleep(writer.clock ?? systemClock, backoffDelay(backoff, failures), writer.signal);
    }
  }
  return await createOwned(writer, updateRecords, record);
}
