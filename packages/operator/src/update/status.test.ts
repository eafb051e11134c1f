import type { Condition } from "@pko/api";
import { describe, expect, test } from "bun:test";

import type { Outcome } from "./outcome.ts";
import { updateStatus, withoutProgress } from "./status.ts";
import { viewOf } from "./testing/views.ts";

/** The state that kstatus computes from the conditions of any kind: kubectl, Flux and Helm wait by it. */
function kstatus(conditions: readonly Condition[]): "InProgress" | "Failed" | "Current" {
  const statusOf = (type: string) => conditions.find((condition) => condition.type === type)?.status;
  if (statusOf("Reconciling") === "True") return "InProgress";
  if (statusOf("Stalled") === "True") return "Failed";
  const ready = statusOf("Ready");
  return ready === undefined || ready === "True" ? "Current" : "InProgress";
}

const ended = (reason: Extract<Outcome, { kind: "ended" }>["ending"]["reason"]): Outcome => ({
  kind: "ended",
  ending: { reason, message: "It ended." },
});

describe("kstatus regards an Update as", () => {
  const table: readonly (readonly [string, string, Outcome])[] = [
    ["InProgress", "waits", { kind: "waiting", reason: "WorkspaceNotReady", message: "It waits." }],
    ["InProgress", "has started", { kind: "started", podUid: "uid" }],
    ["InProgress", "runs", { kind: "progressing", reason: "Progressing", message: "It runs." }],
    ["Failed", "is stalled", { kind: "stalled", reason: "NodeLost", message: "The node is lost." }],
    ["Current", "has succeeded", ended("UpdateSucceeded")],
    ["Failed", "has failed", ended("UpdateFailed")],
    ["Failed", "was cancelled", ended("Canceled")],
    ["Failed", "was interrupted", ended("Aborted")],
  ];
  test.each(table)("%s while or when it %s", (state, _, outcome) => {
    const { conditions = [], observedGeneration } = updateStatus(viewOf(), { outcome });
    expect([kstatus(conditions), observedGeneration]).toEqual([state as never, 1]);
  });
});

describe("only progress differs", () => {
  const waiting = (message: string): Outcome => ({ kind: "waiting", reason: "WorkspaceNotReady", message });
  const running = (message: string): Outcome => ({ kind: "progressing", reason: "Progressing", message });
  const table: readonly (readonly [string, readonly [Outcome, Outcome], boolean])[] = [
    ["between two messages of an Update that waits", [waiting("one"), waiting("two")], true],
    ["between two messages of a run", [running("one"), running("two")], true],
    ["not when it starts", [waiting("one"), { kind: "started", podUid: "uid" }], false],
    ["not when it ends", [running("one"), ended("UpdateSucceeded")], false],
  ];
  test.each(table)("%s", (_, [before, after], isProgress) => {
    const reported = (outcome: Outcome): object => withoutProgress(updateStatus(viewOf(), { outcome }));
    expect(Bun.deepEquals(reported(before), reported(after))).toBe(isProgress);
  });
});
