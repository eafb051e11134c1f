/** What a run of Pulumi reports in status: planned or made changes, and what it printed, bounded. */
import { Type, type Static } from "typebox";

import { flag, int64, mapOf, optional, text } from "../schema/field.ts";

/** Status must stay small: etcd holds it, and every watcher receives it. */
export const stdoutLimit = 16_384;

export const Stdout = Type.Object(
  {
    text: text("The output, or its beginning and end when it is too long.", { maxLength: stdoutLimit }),
    truncated: flag("Whether the middle of the output is left out of the text."),
    secretName: optional(text("The Secret that holds the whole output under the key stdout, when the text does not.")),
  },
  { description: "What Pulumi printed." },
);
export type Stdout = Static<typeof Stdout>;

export const runReportFields = {
  changes: optional(
    mapOf(
      int64("How many resources."),
      "How many resources each kind of step concerns, such as create, update, delete and same.",
    ),
  ),
  summary: optional(text("The changes in one line, such as 2 to create, 1 to delete, 5 unchanged.")),
  stdout: optional(Stdout),
};

/** The key under which a Secret keeps the whole output. */
export const stdoutKey = "stdout";

/** Cuts the middle out of a text that does not fit: a preview's plan is at its beginning, its summary at its end. */
export function boundStdout(whole: string): Stdout {
  if (whole.length <= stdoutLimit) return { text: whole, truncated: false };
  const marker = `\n… ${whole.length - stdoutLimit} or more characters left out …\n`;
  const room = stdoutLimit - marker.length;
  const head = Math.ceil(room * 0.7);
  return {
    text: cut(whole, 0, head) + marker + cut(whole, whole.length - (room - head), whole.length),
    truncated: true,
  };
}

/** A slice that never splits a surrogate pair: the API server refuses a lone half. */
function cut(whole: string, from: number, to: number): string {
  return whole
    .slice(from, to)
    .replace(/^[\uDC00-\uDFFF]/u, "")
    .replace(/[\uD800-\uDBFF]$/u, "");
}
