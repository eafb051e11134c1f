import { expect, test } from "bun:test";
import { triggerAnnotation, type Update, type UpdateStatus } from "@pko/api";

import { ended, commit, failed, running, succeeded, updateOf, withdrawn } from "./testing/views.ts";
import { hasEarlierResult } from "./void-updates.ts";

/** Created this many seconds after the Update that is tested. */
function other(seconds: number, status: UpdateStatus, revision = commit): Update {
  const { metadata } = updateOf();
  const created = new Date(Date.parse(metadata.creationTimestamp ?? "") + seconds * 1000).toISOString();
  const annotations = { [triggerAnnotation]: JSON.stringify({ type: "up", revision }) };
  const name = `web-${seconds}`;
  return updateOf(status, {
    metadata: { ...metadata, name, uid: name, annotations, creationTimestamp: created.replace(".000", "") },
  });
}

const rejected: UpdateStatus = { conditions: failed.conditions ?? [] };

const cases: readonly (readonly [string, UpdateStatus, readonly Update[], boolean])[] = [
  ["a withdrawn Update, if an earlier one succeeded", withdrawn, [other(-1, succeeded)], true],
  ["a withdrawn Update, if an earlier one failed", withdrawn, [other(-1, failed)], true],
  [
    "a withdrawn Update after another one, if one before both ran",
    withdrawn,
    [other(-2, failed), other(-1, withdrawn)],
    true,
  ],
  ["an Update that waits, if an earlier one ran", {}, [other(-1, succeeded)], true],
  ["no Update that runs", running, [other(-1, succeeded)], false],
  ["no Update that ran", failed, [other(-1, succeeded)], false],
  ["no Update that was cancelled while it ran", ended("Canceled"), [other(-1, succeeded)], false],
  ["no Update that failed before it started", rejected, [other(-1, succeeded)], false],
  ["no Update if the earlier one is of another commit", withdrawn, [other(-1, succeeded, "f".repeat(40))], false],
  ["no Update if the earlier one was withdrawn, too", withdrawn, [other(-1, withdrawn)], false],
  ["no Update if the earlier one has not ended", withdrawn, [other(-1, running)], false],
  ["no Update if the other one is later", withdrawn, [other(1, succeeded)], false],
  ["no Update that is the only one", withdrawn, [], false],
];
test.each(cases)("an earlier result stands for %s", (...row) => {
  const [, status, others, expected] = row;
  const update = updateOf(status);
  expect(hasEarlierResult(update, [update, ...others])).toBe(expected);
});
