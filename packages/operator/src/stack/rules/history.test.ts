import type { StackSpec } from "@pko/api";
import { describe, expect, test } from "bun:test";

import { ago, anUpdate, now, succeeded, viewOf, type Setting } from "../testing/views.ts";
import type { StackView, UpdateFacts } from "../view.ts";
import { historyExceeded } from "./history.ts";
import { planStack } from "./index.ts";

/** Ended that many minutes ago, and recorded. */
const ended = (name: string, minutes: number, changes: Partial<UpdateFacts> = {}): UpdateFacts =>
  anUpdate({
    name,
    uid: `uid-of-${name}`,
    state: "succeeded",
    hasFinalizer: false,
    finalizers: [],
    endedAt: now - minutes * 60_000,
    ...changes,
  });

const failure = { state: "failed" } as const;
const plan = { isPlan: true, type: "preview" } as const;
const check = { isDriftCheck: true, type: "refresh" } as const;
const limits = (successful: number, failed = successful): Partial<StackSpec> => ({
  successfulUpdatesHistoryLimit: successful,
  failedUpdatesHistoryLimit: failed,
});

function deleted(view: StackView): string[] {
  const step = historyExceeded(view)?.steps[0];
  return step?.kind === "deleteUpdates" ? step.updates.map(({ name }) => name) : [];
}

type Case = readonly [sentence: string, setting: Setting, deleted: readonly string[]];

const [newest, older, oldest] = [ended("newest", 1), ended("older", 2), ended("oldest", 3)];
const [fresh, stale, old] = [ended("fresh", 4, failure), ended("stale", 5, failure), ended("old", 6, failure)];
const pending = { state: "Pending", digest: "sha256:a", trigger: "", summary: "", expiresAt: ago(-60) } as const;

const cases: readonly Case[] = [
  ["keeps as many as the limits", { spec: limits(3), updates: [oldest, older, newest, old, stale, fresh] }, []],
  ["deletes the oldest first", { spec: limits(1), updates: [newest, oldest, older] }, ["oldest", "older"]],
  [
    "counts successes and failures separately",
    { spec: limits(2, 1), updates: [newest, older, oldest, fresh, stale, old] },
    ["old", "stale", "oldest"],
  ],
  ["keeps the last success even with a limit of 0", { spec: limits(0), updates: [newest, older] }, ["older"]],
  ["keeps no failure with a limit of 0", { spec: limits(0), updates: [newest, fresh, stale] }, ["stale", "fresh"]],
  [
    "keeps ten of each by default",
    { updates: Array.from({ length: 12 }, (_, i) => ended(`up-${i}`, 20 - i)) },
    ["up-0", "up-1"],
  ],
  [
    "goes by the time of the end, not of the creation",
    { spec: limits(1), updates: [ended("long", 1, { createdAt: now - 9_000_000 }), ended("short", 2)] },
    ["short"],
  ],
  [
    "prefers the later Update if two ended in the same second",
    { spec: limits(1), updates: [ended("first", 1), ended("second", 1)] },
    ["first"],
  ],
  [
    "never deletes an Update that has not ended",
    { spec: limits(0), updates: [newest, anUpdate({ name: "running", hasFinalizer: false })] },
    [],
  ],
  [
    "never deletes an Update whose result is not recorded",
    { spec: limits(0), updates: [newest, ended("unrecorded", 9, { ...failure, hasFinalizer: true })] },
    [],
  ],
  ["deletes nothing twice", { spec: limits(0), updates: [newest, ended("going", 9, { deleting: true })] }, []],
  [
    "never deletes an Update that somebody else created",
    { spec: limits(0), updates: [newest, withoutTrigger(ended("theirs", 9))] },
    [],
  ],
  [
    "keeps the last update, whatever its result",
    { spec: limits(0), last: { ...succeeded(), state: "failed", name: "fresh" }, updates: [newest, fresh, stale] },
    ["stale"],
  ],
  [
    "does not count drift checks as updates",
    { spec: limits(1), updates: [newest, older, ended("check-2", 0, check), ended("check-1", 1, check)] },
    ["older", "check-1"],
  ],
  [
    "does not count plans as updates",
    { spec: limits(1), updates: [newest, older, ended("plan-2", 0, plan), ended("plan-1", 1, plan)] },
    ["older", "plan-1"],
  ],
  [
    "keeps a plan that waits for an approval",
    {
      spec: limits(0),
      status: { approval: { ...pending, updateName: "plan-1", updateUid: "uid" } },
      updates: [newest, ended("plan-1", 5, plan), ended("plan-2", 4, plan)],
    },
    ["plan-2"],
  ],
  [
    "keeps a plan while it is applied",
    {
      spec: limits(0),
      updates: [newest, ended("plan-1", 5, plan), anUpdate({ name: "applying", appliesPlan: "plan-1" })],
    },
    [],
  ],
  [
    "keeps the drift check and the correction that the status names",
    {
      spec: limits(0),
      status: {
        drift: {
          checkedAt: ago(60),
          updateName: "check",
          resources: [],
          corrected: { updateName: "oldest", time: ago(60), summary: "" },
        },
      },
      updates: [newest, older, oldest, ended("check", 5, check)],
    },
    ["older"],
  ],
  [
    "keeps a run that may have left a lock until an update has succeeded",
    { spec: limits(0), updates: [ended("lost", 2, { ...failure, mayHaveLeftLock: true }), ended("before", 9)] },
    [],
  ],
  [
    "deletes a run that may have left a lock after an update has succeeded",
    { spec: limits(0), updates: [ended("lost", 2, { ...failure, mayHaveLeftLock: true }), newest] },
    ["lost"],
  ],
  [
    "leaves the Updates of a deleted Stack to the garbage collector",
    { spec: limits(0), deleting: true, updates: [newest, older] },
    [],
  ],
  ["deletes nothing for an invalid spec", { spec: { ...limits(0), stack: "" }, updates: [newest, older] }, []],
];

function withoutTrigger(update: UpdateFacts): UpdateFacts {
  const { trigger: _, ...rest } = update;
  return rest;
}

describe("the history of a Stack", () => {
  for (const [sentence, setting, names] of cases) {
    test(sentence, () => expect(deleted(viewOf(setting))).toEqual([...names]));
  }

  test("is trimmed in portions", () => {
    const updates = Array.from({ length: 40 }, (_, i) => ended(`up-${i}`, 100 - i));
    expect(deleted(viewOf({ updates }))).toHaveLength(20);
  });

  test("is trimmed once in a pass, which then continues", () => {
    const view = viewOf({ spec: limits(1), last: succeeded({ name: "newest" }), updates: [newest, older] });
    expect(planStack(view).steps).toMatchObject([{ kind: "deleteUpdates" }]);
    expect(planStack({ ...view, isHistoryTrimmed: true })).toMatchObject({ steps: [], outcome: { kind: "upToDate" } });
  });

  test("is trimmed only after results are recorded", () => {
    const finished = anUpdate({ state: "succeeded", endedAt: now });
    const { steps } = planStack(viewOf({ spec: limits(1), updates: [older, oldest, finished] }));
    expect(steps).toMatchObject([{ kind: "recordResult" }]);
  });
});
