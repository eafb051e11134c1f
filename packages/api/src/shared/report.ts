/** Where the results of runs are reported: commit statuses and comments on pull requests. */
import { Type, type Static } from "typebox";

import { optional } from "../schema/field.ts";
import { forgeFields, webURL } from "./forge.ts";

export const ReportSettings = Type.Object(
  {
    ...forgeFields,
    consoleURL: optional(
      webURL(
        "The URL of the console, to which reports link. By default, they link to the page of the update in Pulumi Cloud, if there is one.",
      ),
    ),
  },
  {
    description:
      "Reports the result of every update and preview to the forge of the program: as the status of the commit, and for the preview of a pull request also as a comment.",
  },
);
export type ReportSettings = Static<typeof ReportSettings>;
