/** The observed state of a Program. */
import { Type, type Static } from "typebox";

import { conditionTypes, programConditions } from "../conditions.ts";
import { int64, labels, optional, text, time } from "../schema/field.ts";
import { conditionsOf } from "../shared/condition.ts";

const Artifact = Type.Object(
  {
    path: text("The path of the archive in its storage."),
    url: text("The URL of the archive."),
    revision: text("The revision of the program, which is its generation."),
    digest: optional(
      text("The digest of the archive, as algorithm:checksum.", {
        pattern: "^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$",
      }),
    ),
    lastUpdateTime: time("The time when the archive was created."),
    size: optional(int64("The size of the archive in bytes.")),
    metadata: optional(labels("Additional metadata of the archive.")),
  },
  { description: "The archive of the program, if any." },
);

export const ProgramStatus = Type.Object(
  {
    observedGeneration: optional(int64("The generation of the Program that the status is based on.")),
    conditions: optional(conditionsOf(conditionTypes(programConditions))),
    artifact: optional(Artifact),
  },
  { description: "The observed state of the Program." },
);
export type ProgramStatus = Static<typeof ProgramStatus>;
