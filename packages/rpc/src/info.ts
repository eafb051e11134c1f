/** The result of `info`: the agent's versions, what is prepared and the active run. */
import { Type, type Static } from "typebox";
import { RunId } from "./run.ts";

export const InfoResult = Type.Object({
  /** The newest version of the protocol that the agent supports; it also supports the previous one (versions.ts). */
  protocol: Type.Integer({ minimum: 1 }),
  agentVersion: Type.String({ maxLength: 128 }),
  /** Absent while the CLI is missing or has not reported its version. */
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
