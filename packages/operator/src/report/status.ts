/** The status of an Update with what was reported. Everything else in it belongs to the Update controller. Pure. */
import type { UpdateReport, UpdateStatus } from "@pko/api";
import { timestamp } from "@pko/kube";

import { truncate } from "../shared/truncate.ts";
import type { Outcome } from "./outcome.ts";
import type { ReportPlan } from "./steps.ts";
import type { ReportView } from "./view.ts";

const maxMessage = 1024;

export function reportStatus({ update, now }: ReportView, { outcome }: ReportPlan): UpdateStatus {
  const { report, ...others } = update.status ?? {};
  const next = reportFor(outcome, report, timestamp(now));
  return { ...others, ...(next && { report: next }) };
}

function reportFor(outcome: Outcome, before: UpdateReport | undefined, now: string): UpdateReport | undefined {
  switch (outcome.kind) {
    case "unchanged":
    case "waiting":
    case "resting":
      return before;
    case "superseded":
      return undefined;
    case "due":
      return { ...before, due: true };
    case "reported": {
      const { digest, state, commentID } = outcome;
      return { digest, state, time: now, ...(commentID !== undefined && { commentID }) };
    }
    case "failed":
      return { ...before, problem: outcome.problem, message: truncate(outcome.message, maxMessage) };
  }
}
