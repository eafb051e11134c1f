/** What `Info` tells: who answers, what it has ready, and what it is doing. */
import { Type, type Static } from "typebox";
import { RunId } from "./run.ts";

export const InfoResult = Type.Object({
  /** The newest version of the contract that the agent speaks; it speaks the one before as well (versions.ts). */
  protocol: Type.Integer({ minimum: 1 }),
  agentVersion: Type.String({ maxLength: 128 }),
  /** Absent while the CLI is missing or has not answered. */
  pulumiVersion: Type.Optional(Type.String({ maxLength: 128 })),
  /** The pod's name, which the locks of DIY backends record. */
  hostname: Type.String({ maxLength: 256 }),
  startedAt: Type.String({ maxLength: 64 }),
  stopping: Type.Boolean(),
  prepared: Type.Optional(
    Type.Object({
      revision: Type.String({ maxLength: 512 }),
      stack: Type.String({ maxLength: 512 }),
    }),
  ),
  activeRun: Type.Optional(RunId),
  residentBytes: Type.Integer(),
});
export type InfoResult = Static<typeof InfoResult>;
