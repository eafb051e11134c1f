import { expect, test } from "bun:test";
import type { CancelledPreview } from "@pko/api";

import { cancellations } from "./cancelled.ts";
import { aParent, commits } from "./testing/views.ts";
import type { PreviewRun } from "./view.ts";

const [first, second] = commits;
const head: CancelledPreview = { number: 1, commit: first };
const running: PreviewRun = { ...head, isReported: false };
const reported: PreviewRun = { ...head, isReported: true };

interface Case {
  readonly before?: readonly CancelledPreview[];
  readonly runs?: readonly PreviewRun[];
  readonly wanted?: readonly CancelledPreview[];
  readonly answered?: readonly CancelledPreview[];
}

const cases: readonly (readonly [string, Case, readonly CancelledPreview[], readonly CancelledPreview[]])[] = [
  ["a run of a head that is previewed is none", { runs: [running], wanted: [head] }, [], []],
  ["a run whose pull request was closed is remembered while it exists", { runs: [running] }, [head], []],
  [
    "a run of a former head is remembered while it exists",
    { runs: [running], wanted: [{ number: 1, commit: second }] },
    [head],
    [],
  ],
  [
    "a run is forgotten if its commit is also the head of another pull request that is previewed: they share the status",
    { before: [head], runs: [{ ...running, number: 3 }], wanted: [{ number: 2, commit: first }] },
    [],
    [],
  ],
  ["a run whose result is reported is none", { runs: [reported] }, [], []],
  ["a run whose result was reported in the end is forgotten", { before: [head], runs: [reported] }, [], []],
  ["a run is remembered once", { before: [head], runs: [running] }, [head], []],
  ["a run that no longer exists is reported", { before: [head] }, [head], [head]],
  ["what the forge has answered is forgotten", { before: [head], answered: [head] }, [], []],
  ["a head that is previewed again is forgotten", { before: [head], wanted: [head] }, [], []],
];
test.each(cases)("%s", (...row) => {
  const [, { before, runs = [], wanted = [], answered }, cancelled, due] = row;
  const stack = aParent({}, before ? { cancelledPreviews: [...before] } : {});
  expect(cancellations({ stack, runs, ...(answered && { answered }) }, wanted)).toEqual({
    cancelled: [...cancelled],
    due: [...due],
  });
});
