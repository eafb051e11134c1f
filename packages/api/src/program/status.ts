/** What is known of a Program. */
import { Type, type Static } from "typebox";

import { int64, labels, optional, text, time } from "../schema/field.ts";

const Artifact = Type.Object(
  {
    path: text("The path of the archive in its store."),
    url: text("The address of the archive."),
    revision: text("The revision of the program: its generation."),
    digest: optional(
      text("The digest of the archive, as algorithm:checksum.", {
        pattern: "^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$",
      }),
    ),
    lastUpdateTime: time("When the archive was made."),
    size: optional(int64("The size of the archive in bytes.")),
    metadata: optional(labels("Further facts about the archive.")),
  },
  { description: "The archive of the program, where one is made." },
);

export const ProgramStatus = Type.Object(
  {
    observedGeneration: optional(int64("The generation that the status speaks of.")),
    artifact: optional(Artifact),
  },
  { description: "What the operator last saw of the program." },
);
export type ProgramStatus = Static<typeof ProgramStatus>;
