import { expect, test } from "bun:test";
import type { Update } from "@pko/api";

import { updates } from "../kinds.ts";
import { lostRunsOf } from "./lost-runs.ts";

function ended(reason: string, hour: number, stackName = "dev"): Update {
  const at = (minute: number): string => `2030-01-01T${String(hour).padStart(2, "0")}:${minute}:00Z`;
  const failed = {
    type: "Failed" as const,
    status: reason === "UpdateSucceeded" ? ("False" as const) : ("True" as const),
    reason,
    message: "",
    lastTransitionTime: at(30),
  };
  return {
    apiVersion: updates.apiVersion,
    kind: updates.kind,
    metadata: { name: `update-${hour}` },
    spec: { stackName },
    status: { startTime: at(10), endTime: at(30), conditions: [failed] },
  };
}

test("the runs that no agent told the end of are remembered with their times, of this stack alone", () => {
  const all = [
    ended("Aborted", 9),
    ended("UpdateFailed", 8),
    ended("UpdateSucceeded", 7),
    ended("Unknown", 6),
    ended("Aborted", 5, "other"),
  ];
  expect(lostRunsOf(ended("", 10), all)).toEqual([
    { from: "2030-01-01T06:10:00Z", to: "2030-01-01T06:30:00Z" },
    { from: "2030-01-01T09:10:00Z", to: "2030-01-01T09:30:00Z" },
  ]);
});
