import { describe, expect, test } from "bun:test";

import type { PrepareFailure } from "@pko/rpc";

import { workspaceEvents } from "./events.ts";
import type { Outcome } from "./outcome.ts";
import { workspaceStatus } from "./status.ts";
import { notReady, status, view } from "./testing/views.ts";

const failure: PrepareFailure = { phase: "install", reason: "installFailed", message: "npm failed", lines: ["ERR!"] };

describe("events", () => {
  const events: Readonly<Record<string, [Outcome, string | undefined]>> = {
    prepared: [{ kind: "ready", address: "a:1" }, "Normal Initialized"],
    "prepared, with a backend whose state would be lost": [
      { kind: "ready", address: "a:1", warning: { reason: "StateNotKept", message: "w" } },
      "Warning StateNotKept",
    ],
    "not installed": [{ kind: "failed", failure }, "Warning InstallationFailure"],
    "no stack": [{ kind: "failed", failure: { ...failure, phase: "stack" } }, "Warning StackInitializationFailure"],
    misconfigured: [{ kind: "misconfigured", message: "m" }, "Warning StackInitializationFailure"],
    "blocked by an object of another owner": [{ kind: "blocked", message: "m" }, "Warning OwnershipConflict"],
    unreachable: [{ kind: "unreachable", message: "m" }, "Warning ConnectionFailure"],
    "a lost node": [{ kind: "nodeLost", message: "m" }, "Warning NodeLost"],
    "a stuck pod": [{ kind: "waiting", message: "m", isStuck: true }, "Warning PodStuck"],
    "a pod that starts": [{ kind: "waiting", message: "m", isStuck: false }, undefined],
    idle: [{ kind: "idle" }, undefined],
    "nothing new": [{ kind: "unchanged" }, undefined],
  };
  for (const [name, [outcome, expected]] of Object.entries(events)) {
    test(name, () => {
      const [event] = workspaceEvents(view(notReady()), outcome);
      expect(event && `${event.type} ${event.reason}`).toBe(expected as never);
      // The event is not repeated once the status reports it.
      const reported = view(status(workspaceStatus(view(), outcome)));
      expect(workspaceEvents(reported, outcome)).toEqual([]);
    });
  }
});
