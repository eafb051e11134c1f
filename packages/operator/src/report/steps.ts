/** The steps that the rules of a report can request. */
import type { CommitStatus } from "@pko/forge";
import type { Plan } from "@pko/kube";

import type { Outcome } from "./outcome.ts";

export type Step =
  /** Reads the Secret of the report. */
  | { readonly kind: "readCredentials" }
  /** Reads the record of the run and its outputs. */
  | { readonly kind: "readDetails" }
  | { readonly kind: "send"; readonly report: Report };

export interface Report {
  /** Identifies it. */
  readonly digest: string;
  readonly status: CommitStatus;
  readonly comment?: { readonly pullRequest: number; readonly marker: string; readonly body: string };
}

export type ReportPlan = Plan<Step, Outcome>;
