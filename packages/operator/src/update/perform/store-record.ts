/** Stores the record of a run. A failure is reported, and neither fails nor delays the result of the run. */
import type { UpdateRecord } from "@pko/api";
import { ApiError, isTransient } from "@pko/kube";

import { updateRecords } from "../../kinds.ts";
import * as messages from "../messages.ts";
import { createOwned, type OwnedWriter } from "./create-owned.ts";

/** Why the record was not stored; undefined if it was stored now or before. */
export async function storeRecord(writer: OwnedWriter, record: UpdateRecord): Promise<string | undefined> {
  try {
    const occupant = await createTwice(writer, record);
    return occupant === undefined ? undefined : messages.recordNotStored(messages.recordNameTaken(occupant));
  } catch (error) {
    // Without the API server, the status cannot be written either.
    if (!(error instanceof ApiError)) throw error;
    return messages.recordNotStored(error.explanation);
  }
}

/** A second attempt after an error that may be temporary. The first may have succeeded. */
async function createTwice(writer: OwnedWriter, record: UpdateRecord): Promise<string | undefined> {
  try {
    return await createOwned(writer, updateRecords, record);
  } catch (error) {
    if (!(error instanceof ApiError) || !isTransient(error)) throw error;
    return await createOwned(writer, updateRecords, record);
  }
}
