import { describe, expect, test } from "bun:test";

import type { PrepareFailure } from "@pko/rpc";

import type { Outcome } from "./outcome.ts";
import { eventOf, isSameStatus, statusOf } from "./status.ts";
import { changed, notReady, ready, status, view } from "./testing/views.ts";

const failure: PrepareFailure = { phase: "install", reason: "installFailed", message: "npm failed", lines: ["ERR!"] };

const cases: Readonly<
  Record<string, { outcome: Outcome; ready: string; reason: string; stalled?: true; address?: string }>
> = {
  "being deleted": { outcome: { kind: "deleting" }, ready: "False", reason: "Deleting" },
  refused: {
    outcome: { kind: "refused", message: "m" },
    ready: "False",
    reason: "InitializationFailed",
    stalled: true,
  },
  "blocked by somebody else's object": {
    outcome: { kind: "blocked", message: "m" },
    ready: "False",
    reason: "OwnershipConflict",
    stalled: true,
  },
  waiting: { outcome: { kind: "waiting", message: "m", isStuck: true }, ready: "False", reason: "WaitingForReplicas" },
  rolling: { outcome: { kind: "rolling", message: "m" }, ready: "False", reason: "RollingUpdate" },
  "held: the run goes on at its address": {
    outcome: { kind: "held", message: "m" },
    ready: "False",
    reason: "RollingUpdate",
    address: "10.0.0.1:50051",
  },
  preparing: { outcome: { kind: "preparing" }, ready: "False", reason: "Initializing" },
  installing: { outcome: { kind: "preparing", phase: "install" }, ready: "False", reason: "Installing" },
  "not installed": {
    outcome: { kind: "failed", failure },
    ready: "False",
    reason: "InstallationFailed",
    stalled: true,
  },
  "the network is down: no reason to give up": {
    outcome: { kind: "failed", failure: { ...failure, phase: "source", reason: "sourceUnavailable" } },
    ready: "False",
    reason: "InitializationFailed",
  },
  "too old": {
    outcome: { kind: "failed", failure: { ...failure, reason: "versionTooLow" } },
    ready: "False",
    reason: "IncompatibleConfiguration",
    stalled: true,
  },
  unreachable: { outcome: { kind: "unreachable", message: "m" }, ready: "False", reason: "ConnectionFailed" },
  ready: { outcome: { kind: "ready", address: "a:1" }, ready: "True", reason: "Succeeded", address: "a:1" },
  "asleep: ready, without an address": { outcome: { kind: "asleep" }, ready: "True", reason: "Succeeded" },
};

describe("status", () => {
  for (const [name, { outcome, ready: holds, reason, stalled, address }] of Object.entries(cases)) {
    test(name, () => {
      const result = statusOf(view(ready()), outcome);
      expect(result.conditions?.map(({ type, status: value, reason: why }) => [type, value, why])).toEqual([
        ["Ready", holds, reason],
        ...(stalled ? [["Stalled", "True", reason]] : []),
      ]);
      expect(result.address).toBe(address as never);
      expect(result).toMatchObject({ observedGeneration: 2, pulumiVersion: "3.259.0" });
      expect(result.conditions?.every(({ message }) => message !== "")).toBe(true);
    });
  }

  test("keeps the time of a condition that keeps its value, and the whole where nothing has changed", () => {
    const seen = view(ready(100));
    const [before] = seen.workspace.status?.conditions ?? [];
    expect(statusOf(seen, { kind: "asleep" }).conditions?.[0]?.lastTransitionTime).toBe(
      before?.lastTransitionTime as never,
    );
    expect(statusOf(seen, { kind: "deleting" }).conditions?.[0]?.lastTransitionTime).toBe("2030-01-01T00:00:00Z");
    expect(statusOf(seen, { kind: "unchanged" })).toBe(seen.workspace.status as never);
  });

  test("speaks of the present generation", () => {
    expect(statusOf(view(ready(), changed), { kind: "preparing" }).observedGeneration).toBe(3);
  });

  test("tells the tool's own lines, within bounds", () => {
    const message = (lines: string[]): string =>
      statusOf(view(), { kind: "failed", failure: { ...failure, lines } }).conditions?.[0]?.message ?? "";
    expect(message(["ERR!"])).toBe("npm failed\nERR!");
    expect(message(["x".repeat(50_000)]).length).toBeLessThan(5000);
  });

  test("is written when it differs, in whatever order its conditions come", () => {
    const refused = statusOf(view(), { kind: "refused", message: "m" });
    expect(isSameStatus({ ...refused, conditions: refused.conditions?.toReversed() ?? [] }, refused)).toBe(true);
    expect(isSameStatus({ ...refused, address: "a" }, refused)).toBe(false);
    expect(isSameStatus(undefined, refused)).toBe(false);
  });
});

test("a warning stays while the workspace sleeps, and goes when it is prepared without", () => {
  const warning = { reason: "SecretsProviderIgnored", message: "w" } as const;
  const warned = statusOf(view(), { kind: "ready", address: "a:1", warning });
  expect(warned).toMatchObject({ warning: "w", conditions: [{ message: "the workspace is prepared; but w" }] });
  const asleep = statusOf(view(status(warned)), { kind: "asleep" });
  expect(asleep.warning).toBe("w");
  expect(statusOf(view(status(asleep)), { kind: "ready", address: "a:1" }).warning).toBeUndefined();
});

describe("events", () => {
  const events: Readonly<Record<string, [Outcome, string | undefined]>> = {
    prepared: [{ kind: "ready", address: "a:1" }, "Normal Initialized"],
    "prepared, with a backend that would be lost": [
      { kind: "ready", address: "a:1", warning: { reason: "StateNotKept", message: "w" } },
      "Warning StateNotKept",
    ],
    "not installed": [{ kind: "failed", failure }, "Warning InstallationFailure"],
    "no stack": [{ kind: "failed", failure: { ...failure, phase: "stack" } }, "Warning StackInitializationFailure"],
    refused: [{ kind: "refused", message: "m" }, "Warning StackInitializationFailure"],
    "blocked by somebody else's object": [{ kind: "blocked", message: "m" }, "Warning OwnershipConflict"],
    unreachable: [{ kind: "unreachable", message: "m" }, "Warning ConnectionFailure"],
    "a stuck pod": [{ kind: "waiting", message: "m", isStuck: true }, "Warning PodStuck"],
    "a pod that starts": [{ kind: "waiting", message: "m", isStuck: false }, undefined],
    sleep: [{ kind: "asleep" }, undefined],
    "nothing new": [{ kind: "unchanged" }, undefined],
  };
  for (const [name, [outcome, event]] of Object.entries(events)) {
    test(name, () => {
      const note = eventOf(view(notReady()), outcome);
      expect(note && `${note.type} ${note.reason}`).toBe(event as never);
      // Once: status says it already.
      const seen = view(status(statusOf(view(), outcome)));
      expect(eventOf(seen, outcome)).toBeUndefined();
    });
  }
});
