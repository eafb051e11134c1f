/** The state of a report, as its plan sees it. Closed: status.ts has a status for each. */
import type { ReportProblem, UpdateReport } from "@pko/api";

export type Outcome =
  /** Nothing to report, or everything is reported, or the rest has to wait. */
  | { readonly kind: "unchanged" }
  /** For the forge, which others are calling. */
  | { readonly kind: "waiting" }
  /** For the end of the forge's rest. */
  | { readonly kind: "resting" }
  /** A later Update reports about the commit. */
  | { readonly kind: "superseded" }
  /** The Update has ended, and nothing about it is reported yet. */
  | { readonly kind: "due" }
  | {
      readonly kind: "reported";
      readonly digest: string;
      readonly state: NonNullable<UpdateReport["state"]>;
      readonly commentID?: string;
    }
  | { readonly kind: "failed"; readonly problem: ReportProblem; readonly message: string };
