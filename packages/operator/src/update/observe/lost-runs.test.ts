import { expect, test } from "bun:test";
import type { Update, UpdateStatus } from "@pko/api";

import { updates } from "../../kinds.ts";
import { lostRunsOf } from "./lost-runs.ts";

const at = (hour: number, minute: number): string => `2030-01-01T${String(hour).padStart(2, "0")}:${minute}:00.250Z`;

const processAt = (hour: number) => ({
  hostname: "web-workspace-0",
  pid: 40 + hour,
  startedAt: at(hour, 11),
  lockedAt: at(hour, 12),
});

function ended(reason: string, hour: number, change: UpdateStatus = {}): Update {
  const failed = {
    type: "Failed" as const,
    status: reason === "UpdateSucceeded" ? ("False" as const) : ("True" as const),
    reason,
    message: "",
    lastTransitionTime: at(hour, 30),
  };
  return {
    apiVersion: updates.apiVersion,
    kind: updates.kind,
    metadata: { name: `update-${hour}` },
    spec: { stackName: "dev" },
    status: {
      startTime: at(hour, 10),
      endTime: at(hour, 30),
      podUid: `pod-${hour}`,
      process: processAt(hour),
      conditions: [failed],
      ...change,
    },
  };
}

const lost = (hour: number) => {
  const { lockedAt, ...process } = processAt(hour);
  return { from: process.startedAt, to: lockedAt, ...process };
};

const next: Update = { ...ended("", 10), status: { podUid: "pod-10" } };

test("runs whose pods no longer exist are passed on with their process, oldest first", () => {
  const all = [ended("Aborted", 9), ended("Unknown", 6), ended("Canceled", 7)];
  expect(lostRunsOf(next, all)).toEqual([lost(6), lost(7), lost(9)]);
});

test("only runs that may have left a lock of this stack, in another pod, are passed on", () => {
  const { process: _, ...unconfirmed } = ended("Aborted", 3).status ?? {};
  const all: Update[] = [
    ended("UpdateFailed", 8),
    ended("UpdateSucceeded", 7),
    { ...ended("Aborted", 5), spec: { stackName: "other" } },
    ended("Aborted", 4, { podUid: "pod-10" }),
    { ...ended("Aborted", 3), status: unconfirmed },
  ];
  expect(lostRunsOf(next, all)).toEqual([]);
});
