import type { Condition } from "@pko/api";
import { describe, expect, test } from "bun:test";

import type { Outcome } from "./outcome.ts";
import { statusWithoutMessages, updateStatus, withoutProgress } from "./status.ts";
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

describe("what was reported to a forge stays in the status", () => {
  const report = { digest: "d", state: "running" } as const;
  const view = viewOf((before) => ({ ...before, update: { ...before.update, status: { report } } }));
  test.each([
    ["while it waits", { kind: "waiting", reason: "WorkspaceNotReady", message: "" }],
    ["when it starts", { kind: "started", podUid: "uid" }],
    ["while it runs", { kind: "progressing", reason: "Progressing", message: "" }],
    ["while it is stalled", { kind: "stalled", reason: "NodeLost", message: "" }],
    ["when it ends", ended("UpdateSucceeded")],
  ] satisfies readonly (readonly [string, Outcome])[])("%s", (_, outcome) => {
    expect(updateStatus(view, { outcome }).report).toEqual(report);
  });

  test("also if the API server rejects the messages", () => {
    expect(statusWithoutMessages(view, { reason: "UpdateFailed", message: "" }).report).toEqual(report);
  });
});
