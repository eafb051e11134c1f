import { expect, test } from "bun:test";

import type { EventNote } from "@pko/kube";

import { updateEvents } from "./events.ts";
import { recordNotStored } from "./messages.ts";
import { statusWithoutMessages } from "./status.ts";
import { started } from "./testing/plans.ts";
import { resultOf, viewOf } from "./testing/views.ts";

const error = { class: "conflict", message: "unprintable", lines: [] } as const;
const ending = {
  reason: "UpdateFailed",
  message: "The up failed: unprintable",
  result: resultOf({ outcome: "failed", error: { ...error, lines: [] } }),
} as const;
const plan = { steps: [], outcome: { kind: "ended", ending } } as const;

test("everything that could not be stored of a result is reported in one event", () => {
  const stored = { problems: ["The outputs could not be read.", "No Secret."], failures: ["No Secret."] };
  const events = updateEvents({ ...viewOf(...started), stored, statusRejection: "too rude" }, plan);
  expect(events).toEqual([
    { type: "Warning", reason: "UpdateFailed", message: "The up failed: unprintable" },
    {
      type: "Warning",
      reason: "StackOutputRetrievalFailure",
      message: "No Secret.\nThe messages of the operation could not be stored: too rude",
    },
  ]);
});

const notStored: EventNote = {
  type: "Warning",
  reason: "RecordNotStored",
  message: "The record of the run could not be stored: exceeded quota. The result of the run is not affected.",
};

test("a record that could not be stored is reported", () => {
  const recordFailure = recordNotStored("exceeded quota.");
  expect(updateEvents({ ...viewOf(...started), recordFailure }, plan).slice(1)).toEqual([notStored]);
});

test("a record that the agent did not return is reported", () => {
  const run = { state: "finished", result: ending.result, outputs: [], recordProblem: "no disk" } as const;
  const [event, ...others] = updateEvents({ ...viewOf(...started), run }, plan).slice(1);
  expect(event?.reason).toBe("RecordNotStored");
  expect(event?.message).toMatch(/no events.*no disk$/);
  expect(others).toEqual([]);
});

test("a result that is stored completely has one event", () => {
  const view = { ...viewOf(...started), stored: { outputs: "web-1-stack-outputs", problems: [], failures: [] } };
  expect(updateEvents(view, plan)).toHaveLength(1);
});

test("the status without messages has everything of the result but the texts of the operation", () => {
  const status = statusWithoutMessages(
    { ...viewOf(...started), stored: { outputs: "web-1-stack-outputs", problems: [], failures: [] } },
    ending,
  );
  expect(status).toMatchObject({ podUid: "pod-a", errorClass: "conflict", outputs: "web-1-stack-outputs" });
  expect(status.message).toStartWith("The up did not succeed. Its messages could not be stored");
  expect(JSON.stringify(status)).not.toContain("unprintable");
});
