/** The result of a Pulumi run in the status: planned or applied changes, and truncated output. */
import { Type, type Static } from "typebox";

import { flag, int64, mapOf, optional, text } from "../schema/field.ts";

/** The status must stay small: etcd stores it, and every watcher receives it. */
export const stdoutLimit = 16_384;

export const Stdout = Type.Object(
  {
    text: text("The output, or its beginning and end if it is too long.", { maxLength: stdoutLimit }),
    truncated: flag("Whether the middle of the output is omitted."),
    secretName: optional(
      text("The Secret with the whole output under the key stdout, if the output is truncated here."),
    ),
  },
  { description: "The output of Pulumi." },
);
export type Stdout = Static<typeof Stdout>;

export const runReportFields = {
  changes: optional(
    mapOf(
      int64("The number of resources."),
      "The number of resources for each type of step, such as create, update, delete and same.",
    ),
  ),
  summary: optional(text("The changes in one line, such as 2 to create, 1 to delete, 5 unchanged.")),
  stdout: optional(Stdout),
};

/** The key of the whole output in its Secret. */
export const stdoutKey = "stdout";

/** Removes the middle of output that is too long: a preview's plan is at the beginning, its summary at the end. */
export function truncateStdout(whole: string): Stdout {
  if (whole.length <= stdoutLimit) return { text: whole, truncated: false };
  const marker = `\n… ${whole.length - stdoutLimit} or more characters omitted …\n`;
  const room = stdoutLimit - marker.length;
  const head = Math.ceil(room * 0.7);
  return {
    text: cut(whole, 0, head) + marker + cut(whole, whole.length - (room - head), whole.length),
    truncated: true,
  };
}

/** A slice that never splits a surrogate pair: the API server rejects lone surrogates. */
function cut(whole: string, from: number, to: number): string {
  return whole
    .slice(from, to)
    .replace(/^[\uDC00-\uDFFF]/u, "")
    .replace(/[\uD800-\uDBFF]$/u, "");
}
