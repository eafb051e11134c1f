/** The record of a run, as the operator stores it in an UpdateRecord. */
import { Type, type Static } from "typebox";
import { maxContentBytes, Omitted } from "@pko/records";
import { RunId } from "./run.ts";

export const RecordRequest = Type.Object({ runId: RunId }, { additionalProperties: false });
export type RecordRequest = Static<typeof RecordRequest>;

const name = Type.String({ minLength: 1, maxLength: 64 });

export const RecordResult = Type.Object({
  /** `RecordContent` as `encodeContent` returns it. */
  content: Type.String({ maxLength: Math.ceil(maxContentBytes / 3) * 4 }),
  omitted: Omitted,
  /** The versions of `agent` and `pulumi`. */
  versions: Type.Record(name, Type.String({ maxLength: 128 })),
  /** Digests that are equal if the input was equal in two runs. None of them allows guessing a secret. */
  inputs: Type.Record(name, Type.String({ maxLength: 128 })),
});
export type RecordResult = Static<typeof RecordResult>;
