/** The methods: POST /v<version>/<name> with a JSON body. A call answers one JSON value, a stream answers lines of frames. */
import { Type, type Static } from "typebox";
import { InfoResult } from "./info.ts";
import { PrepareMessage } from "./prepare.ts";
import {
  CancelRequest,
  CancelResult,
  OutputsMessage,
  OutputsRequest,
  StartRequest,
  StartResult,
  WatchMessage,
  WatchRequest,
} from "./run.ts";
import { PrepareRequest } from "./source.ts";
import type { ContractVersion } from "./versions.ts";

const Empty = Type.Object({}, { additionalProperties: false });

/** One answer to one request. */
export const calls = {
  info: { name: "info", request: Empty, answer: InfoResult },
  start: { name: "start", request: StartRequest, answer: StartResult },
  cancel: { name: "cancel", request: CancelRequest, answer: CancelResult },
} as const;

/** Messages until the end. */
export const streams = {
  prepare: { name: "prepare", request: PrepareRequest, message: PrepareMessage },
  watch: { name: "watch", request: WatchRequest, message: WatchMessage },
  outputs: { name: "outputs", request: OutputsRequest, message: OutputsMessage },
} as const;

/** A stream's lines. `end` tells a whole stream from a torn one. */
export const Frame = Type.Union([
  Type.Object({ frame: Type.Literal("message"), message: Type.Unknown() }),
  Type.Object({ frame: Type.Literal("heartbeat") }),
  /** An `AgentError`, perhaps with a code of a later version. */
  Type.Object({ frame: Type.Literal("error"), error: Type.Unknown() }),
  Type.Object({ frame: Type.Literal("end") }),
]);
export type Frame = Static<typeof Frame>;

/** A refused request's answer: an `AgentError`, perhaps with a code of a later version. */
export const ErrorBody = Type.Object({ error: Type.Unknown() });

export function pathOf(version: ContractVersion, method: string): string {
  return `/v${version}/${method}`;
}
