/** What a record contains about the resources that failed. Pure. */
import type { NumberedEvent } from "@pko/records";

import { RunLog } from "./run-log.ts";

/** More would hide the rest of the explanation. */
const mostFailures = 5;

export function failuresIn(events: readonly NumberedEvent[]): string[] {
  const log = RunLog.of(events);
  const failed = log.resources.filter(({ state }) => state === "failed");
  const texts = failed.slice(0, mostFailures).map(({ op, type, name, urn }) => {
    const errors = log.diagnostics.filter((each) => each.severity === "error" && each.urn === urn);
    return `${op} ${type} ${name}${errors.length > 0 ? `: ${errors.map(({ message }) => message).join("; ")}` : ""}`;
  });
  return failed.length > mostFailures ? [...texts, `and ${failed.length - mostFailures} more`] : texts;
}
