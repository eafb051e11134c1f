/** The methods: POST /v<version>/<name> with a JSON body. A call returns one JSON value, a stream returns lines of frames. */
import { Type, type Static } from "typebox";
import { InfoResult } from "./info.ts";
import { PrepareMessage } from "./prepare.ts";
import { RecordRequest, RecordResult } from "./record.ts";
import {
  CancelRequest,
  CancelResult,
  OutputsMessage,
  OutputsRequest,
  PlanMessage,
  PlanRequest,
  StartRequest,
  StartResult,
  WatchMessage,
  WatchRequest,
} from "./run.ts";
import { PrepareRequest } from "./source.ts";
import type { ContractVersion } from "./versions/versions.ts";

const Empty = Type.Object({}, { additionalProperties: false });

/** One response per request. */
export const calls = {
  info: { name: "info", request: Empty, answer: InfoResult },
  start: { name: "start", request: StartRequest, answer: StartResult },
  cancel: { name: "cancel", request: CancelRequest, answer: CancelResult },
  record: { name: "record", request: RecordRequest, answer: RecordResult },
} as const;

/** Many messages per request. */
export const streams = {
  prepare: { name: "prepare", request: PrepareRequest, message: PrepareMessage },
  watch: { name: "watch", request: WatchRequest, message: WatchMessage },
  outputs: { name: "outputs", request: OutputsRequest, message: OutputsMessage },
  plan: { name: "plan", request: PlanRequest, message: PlanMessage },
} as const;

/** A stream's lines. `end` distinguishes a complete stream from an interrupted one. */
export const Frame = Type.Union([
  Type.Object({ frame: Type.Literal("message"), message: Type.Unknown() }),
  Type.Object({ frame: Type.Literal("heartbeat") }),
  /** An `AgentError`, possibly with a code from a later version. */
  Type.Object({ frame: Type.Literal("error"), error: Type.Unknown() }),
  Type.Object({ frame: Type.Literal("end") }),
]);
export type Frame = Static<typeof Frame>;

/** The response to a rejected request: an `AgentError`, possibly with a code from a later version. */
export const ErrorBody = Type.Object({ error: Type.Unknown() });

export function methodPath(version: ContractVersion, method: string): string {
  return `/v${version}/${method}`;
}
