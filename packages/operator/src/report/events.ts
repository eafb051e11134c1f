/** What the events of an Update report about its reports: each problem once, and its end. Pure. */
import { autoEvents, type AutoEvent } from "@pko/api";
import type { EventNote } from "@pko/kube";

import * as messages from "./messages.ts";
import type { ReportPlan } from "./steps.ts";
import type { ReportView } from "./view.ts";

export function reportEvents({ update }: ReportView, { outcome }: ReportPlan): EventNote[] {
  const before = update.status?.report?.problem;
  if (outcome.kind === "failed" && outcome.problem !== before) return [note("ReportFailed", outcome.message)];
  return outcome.kind === "reported" && before !== undefined ? [note("ReportResumed", messages.resumed)] : [];
}

const note = (reason: AutoEvent, message: string): EventNote => ({ type: autoEvents[reason], reason, message });
