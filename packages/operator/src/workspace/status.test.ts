import { describe, expect, test } from "bun:test";

import type { PrepareFailure } from "@pko/rpc";

import type { Outcome } from "./outcome.ts";
import { withoutProgress, workspaceStatus } from "./status.ts";
import { changed, ready, retryAt, status, view } from "./testing/views.ts";

const failure: PrepareFailure = { phase: "install", reason: "installFailed", message: "npm failed", lines: ["ERR!"] };

const cases: Readonly<
  Record<string, { outcome: Outcome; ready: string; reason: string; stalled?: true; address?: string }>
> = {
  "being deleted": { outcome: { kind: "deleting" }, ready: "False", reason: "Deleting" },
  misconfigured: {
    outcome: { kind: "misconfigured", message: "m" },
    ready: "False",
    reason: "InitializationFailed",
    stalled: true,
  },
  "blocked by an object of another owner": {
    outcome: { kind: "blocked", message: "m" },
    ready: "False",
    reason: "OwnershipConflict",
    stalled: true,
  },
  waiting: { outcome: { kind: "waiting", message: "m", isStuck: true }, ready: "False", reason: "WaitingForReplicas" },
  rolling: { outcome: { kind: "rolling", message: "m" }, ready: "False", reason: "RollingUpdate" },
  "waiting for a run, which continues at its address": {
    outcome: { kind: "waitingForRun", message: "m" },
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
  "not stalled by a transient failure": {
    outcome: { kind: "failed", failure: { ...failure, phase: "source", reason: "sourceUnavailable" } },
    ready: "False",
    reason: "InitializationFailed",
  },
  "stalled by a CLI that is too old": {
    outcome: { kind: "failed", failure: { ...failure, reason: "versionTooLow" } },
    ready: "False",
    reason: "IncompatibleConfiguration",
    stalled: true,
  },
  unreachable: { outcome: { kind: "unreachable", message: "m" }, ready: "False", reason: "ConnectionFailed" },
  ready: { outcome: { kind: "ready", address: "a:1" }, ready: "True", reason: "Succeeded", address: "a:1" },
  "idle: ready, without an address": { outcome: { kind: "idle" }, ready: "True", reason: "Succeeded" },
};

describe("status", () => {
  for (const [name, { outcome, ready: holds, reason, stalled, address }] of Object.entries(cases)) {
    test(name, () => {
      const result = workspaceStatus(view(ready()), outcome);
      expect(result.conditions?.map(({ type, status: value, reason: why }) => [type, value, why])).toEqual([
        ["Ready", holds, reason],
        ...(stalled ? [["Stalled", "True", reason]] : []),
      ]);
      expect(result.address).toBe(address as never);
      expect(result).toMatchObject({ observedGeneration: 2, pulumiVersion: "3.259.0" });
      expect(result.conditions?.every(({ message }) => message !== "")).toBe(true);
    });
  }

  test("changes the transition time of a condition only with its status, and nothing if the outcome is unchanged", () => {
    const seen = view(ready(100));
    const [before] = seen.workspace.status?.conditions ?? [];
    expect(workspaceStatus(seen, { kind: "idle" }).conditions?.[0]?.lastTransitionTime).toBe(
      before?.lastTransitionTime as never,
    );
    expect(workspaceStatus(seen, { kind: "deleting" }).conditions?.[0]?.lastTransitionTime).toBe(
      "2030-01-01T00:00:00Z",
    );
    expect(workspaceStatus(seen, { kind: "unchanged" })).toBe(seen.workspace.status as never);
  });

  test("keeps everything about a failure while it is retried, also the condition behind the alert", () => {
    const failed = view(status(workspaceStatus(view(), { kind: "failed", failure })), retryAt(Infinity));
    const before = failed.workspace.status;
    expect(before?.conditions?.map(({ type }) => type)).toEqual(["Ready", "Stalled"]);
    expect(workspaceStatus(failed, { kind: "waiting", message: "m", isStuck: false })).toBe(before as never);
    expect(workspaceStatus(failed, { kind: "ready", address: "a:1" }).conditions).toMatchObject([{ status: "True" }]);
    const other = { ...failure, phase: "source", message: "no route" } as const;
    expect(workspaceStatus(failed, { kind: "failed", failure: other }).conditions).toMatchObject([
      { reason: "InitializationFailed" },
      { reason: "InitializationFailed" },
    ]);
  });

  test("reports the current generation", () => {
    expect(workspaceStatus(view(ready(), changed), { kind: "preparing" }).observedGeneration).toBe(3);
  });

  test("contains the tool's output, truncated", () => {
    const message = (lines: string[]): string =>
      workspaceStatus(view(), { kind: "failed", failure: { ...failure, lines } }).conditions?.[0]?.message ?? "";
    expect(message(["ERR!"])).toBe("npm failed\nERR!");
    expect(message(["x".repeat(50_000)]).length).toBeLessThan(5000);
  });
});

test("the result of a comparison stays while the workspace is idle, and is removed when it is prepared for something else", () => {
  const unchanged = workspaceStatus(view(), { kind: "ready", address: "a:1", unchangedSince: "c1" });
  expect(unchanged.unchangedSince).toBe("c1");
  const idle = workspaceStatus(view(status(unchanged)), { kind: "idle" });
  expect(idle.unchangedSince).toBe("c1");
  expect(workspaceStatus(view(status(idle)), { kind: "preparing" }).unchangedSince).toBeUndefined();
  expect(workspaceStatus(view(status(idle)), { kind: "ready", address: "a:1" }).unchangedSince).toBeUndefined();
});

test("a warning stays while the workspace is idle, and is removed when it is prepared without one", () => {
  const warning = { reason: "SecretsProviderIgnored", message: "w" } as const;
  const warned = workspaceStatus(view(), { kind: "ready", address: "a:1", warning });
  expect(warned).toMatchObject({ warning: "w", conditions: [{ message: "the workspace is prepared, but w" }] });
  const idle = workspaceStatus(view(status(warned)), { kind: "idle" });
  expect(idle.warning).toBe("w");
  expect(workspaceStatus(view(status(idle)), { kind: "ready", address: "a:1" }).warning).toBeUndefined();
});

describe("only the progress of the start differs", () => {
  const cases: Readonly<Record<string, readonly [Outcome, Outcome, boolean]>> = {
    "between two phases": [{ kind: "preparing", phase: "source" }, { kind: "preparing", phase: "install" }, true],
    "between a pod that starts and its preparation": [
      { kind: "waiting", message: "m", isStuck: false },
      { kind: "preparing" },
      true,
    ],
    "not if it is ready": [{ kind: "preparing" }, { kind: "ready", address: "a" }, false],
    "not if it failed": [{ kind: "preparing" }, { kind: "failed", failure }, false],
    "not if its pod is replaced": [{ kind: "preparing" }, { kind: "rolling", message: "m" }, false],
    "not between two failures": [
      { kind: "misconfigured", message: "one" },
      { kind: "misconfigured", message: "two" },
      false,
    ],
  };
  for (const [name, [before, after, isSame]] of Object.entries(cases)) {
    test(name, () => {
      const reported = (outcome: Outcome): string => JSON.stringify(withoutProgress(workspaceStatus(view(), outcome)));
      expect(reported(before) === reported(after)).toBe(isSame);
    });
  }
});
