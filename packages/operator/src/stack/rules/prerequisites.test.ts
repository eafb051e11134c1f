import { describe, expect, test } from "bun:test";

import { clockSkewMs } from "../../shared/parse-timestamp.ts";
import {
  ago,
  cases,
  creating,
  messageFor,
  now,
  prerequisite,
  stackOutput,
  succeeded,
  withOutput,
  type Setting,
} from "../testing/views.ts";

const waits = { name: "base" };
cases("prerequisites: a Stack", [
  [
    "creates the update after a prerequisite succeeded",
    { spec: { prerequisites: [waits] }, prerequisites: [prerequisite()] },
    creating("up for first"),
  ],
  [
    "creates the update if a prerequisite succeeded recently enough",
    { prerequisites: [prerequisite({ withinMs: 600_000 })] },
    creating("up for first"),
  ],
  [
    "waits for a prerequisite that does not exist",
    { prerequisites: [prerequisite({ state: "absent", last: "none" })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "waits for a prerequisite that has not run yet",
    { prerequisites: [prerequisite({ last: "none" })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "waits for a prerequisite that failed",
    { prerequisites: [prerequisite({ last: "failed" })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "waits for a prerequisite that is being deleted",
    { prerequisites: [prerequisite({ state: "deleting" })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "requests an update of a prerequisite that is too old",
    { prerequisites: [prerequisite({ withinMs: 599_000 })] },
    "requestPrerequisites: PrerequisiteNotSatisfied",
  ],
  [
    "requests an update of a prerequisite whose last one was recorded by a clock which was hours ahead",
    { prerequisites: [prerequisite({ withinMs: 599_000, endedAt: now + 36_000_000 })] },
    "requestPrerequisites: PrerequisiteNotSatisfied",
  ],
  [
    "creates the update if the clock that recorded the success of a prerequisite was as far ahead as clocks may differ",
    { prerequisites: [prerequisite({ withinMs: 599_000, endedAt: now + clockSkewMs })] },
    creating("up for first"),
  ],
  [
    "requests that update only once",
    { prerequisites: [prerequisite({ withinMs: 1, reconcileRequest: `after-${ago(600)}` })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "waits for each of several prerequisites",
    { prerequisites: [prerequisite(), prerequisite({ name: "other", last: "none" })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "reports an unmet prerequisite before a missing Secret",
    { missing: ["there is no Secret a"], prerequisites: [prerequisite({ last: "none" })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "ignores prerequisites for a destroy",
    {
      deleting: true,
      spec: { destroyOnFinalize: true },
      last: succeeded(),
      prerequisites: [prerequisite({ last: "none" })],
    },
    creating("destroy for destroy"),
  ],
  [
    "waits for a prerequisite that has changed since it succeeded",
    { prerequisites: [prerequisite({ isCurrent: false })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "waits for the outputs of a Stack that has changed since it succeeded",
    { spec: withOutput(), stackOutputs: [stackOutput("v1", prerequisite({ isCurrent: false }))] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "waits for a prerequisite that was only previewed",
    { prerequisites: [prerequisite({ last: "previewed" })] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "accepts a previewed prerequisite for a preview",
    { spec: { preview: true }, prerequisites: [prerequisite({ last: "previewed" })] },
    creating("preview for first"),
  ],
  [
    "waits for an output",
    { spec: withOutput(), stackOutputs: [stackOutput(undefined, prerequisite({ last: "none" }))] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "waits for an output of a Stack that does not exist",
    { spec: withOutput(), stackOutputs: [stackOutput(undefined, prerequisite({ state: "absent", last: "none" }))] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "requests an update of a Stack whose outputs were not stored",
    { spec: withOutput(), stackOutputs: [stackOutput()] },
    "requestPrerequisites: PrerequisiteNotSatisfied",
  ],
  [
    "requests that update only once, even if it stored no outputs",
    {
      spec: withOutput(),
      stackOutputs: [stackOutput(undefined, prerequisite({ reconcileRequest: "outputs-are-needed" }))],
    },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "requests no update of a Stack that has other outputs",
    { spec: withOutput(), stackOutputs: [{ ...stackOutput(), others: ["uri"] }] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "requests no update of a Stack if another owner's Secret has the name of the one with its outputs",
    { spec: withOutput(), stackOutputs: [{ ...stackOutput(), isForeign: true }] },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "requests no update of a Stack that previews",
    {
      spec: { ...withOutput(), preview: true },
      stackOutputs: [stackOutput(undefined, prerequisite({ last: "previewed" }))],
    },
    "none: PrerequisiteNotSatisfied",
  ],
  [
    "creates the update if the output exists",
    { spec: withOutput(), stackOutputs: [stackOutput("v1")] },
    creating("up for first"),
  ],
  [
    "does not use an output of a Stack that has failed since",
    { spec: withOutput(), stackOutputs: [stackOutput("v1", prerequisite({ last: "failed" }))] },
    "none: PrerequisiteNotSatisfied",
  ],
]);

describe("the message about a prerequisite", () => {
  const notStored = "the outputs of Stack base were not stored, and its output url is needed";
  const output = (from = prerequisite()): Setting => ({
    spec: withOutput(),
    stackOutputs: [stackOutput(undefined, from)],
  });
  const table: readonly (readonly [string, Setting, string])[] = [
    [
      "shows that it does not exist",
      { prerequisites: [prerequisite({ state: "absent", last: "none" })] },
      "there is no Stack base.",
    ],
    [
      "shows that it failed",
      { prerequisites: [prerequisite({ last: "failed" })] },
      "the last update of Stack base failed.",
    ],
    ["shows that its outputs were not stored", output(), `${notStored}.`],
    [
      "shows how to run it again if it still has no outputs",
      output(prerequisite({ reconcileRequest: "outputs-are-needed" })),
      `${notStored}; to run it, set its annotation pulumi.com/reconciliation-request to a new value.`,
    ],
  ];
  for (const [sentence, setting, text] of table) test(sentence, () => expect(messageFor(setting)).toContain(text));
});
