import type { Condition } from "@pko/api";
import { describe, expect, test } from "bun:test";

import type { Outcome } from "./outcome.ts";
import { updateStatus } from "./status.ts";
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
