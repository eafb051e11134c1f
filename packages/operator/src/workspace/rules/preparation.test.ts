import { describe, expect, test } from "bun:test";

import type { Prepared, PrepareFailure } from "@pko/rpc";

import type { Preparation } from "../../agents/agents.ts";
import type { Step } from "../steps.ts";
import { checkPlans, type Case } from "../testing/cases.ts";
import {
  ago,
  changed,
  given,
  input,
  notReady,
  now,
  pod,
  podStarting,
  ready,
  retryAt,
  set,
  view,
  type Trait,
} from "../testing/views.ts";
import { planWorkspace } from "./index.ts";

const prepared: Prepared = {
  revision: "r",
  stack: "dev",
  project: { name: "p", runtime: "yaml" },
  pulumiVersion: "3.260.0",
  changed: { source: true, dependencies: true, stack: true, config: true },
  timings: { source: 1, install: 1, stack: 1, config: 1 },
};
const succeeded: Preparation = { state: "done", result: { ok: true, prepared } };
const unchanged: Preparation = {
  state: "done",
  result: { ok: true, prepared: { ...prepared, unchangedSince: "c1" } },
};

const failed = (failure: Partial<PrepareFailure>): Preparation => ({
  state: "done",
  result: { ok: false, failure: { phase: "source", reason: "other", message: "no", lines: [], ...failure } },
});

const unreachable = (seconds: number): Preparation => ({
  state: "unreachable",
  message: "refused",
  sinceMs: ago(seconds),
});
const busy: Preparation = { state: "busy", message: "a run is active" };

/** In a pod that is up, unless a trait changes that. */
const after = (preparation: Preparation, ...traits: readonly Trait[]): Pick<Case, "when"> => ({
  when: [set(), pod(), ...traits, given({ preparation })],
});

describe("a preparation in progress", () => {
  checkPlans({
    "is reported, and checked every minute in case its end is missed": {
      ...after({ state: "running" }),
      outcome: "preparing",
      reason: "Initializing",
      requeueAfterMs: 60_000,
    },
    "is reported while it installs": {
      ...after({ state: "running", phase: "install" }),
      outcome: "preparing",
      reason: "Installing",
    },
    "is reported while it configures": {
      ...after({ state: "running", phase: "config" }),
      outcome: "preparing",
      reason: "Initializing",
    },
    "is checked every five minutes if the workspace stays ready and never becomes idle": {
      ...after({ state: "running" }, ready(), given({ idleTimeoutMs: 0 })),
      outcome: "unchanged",
      requeueAfterMs: 300_000,
    },
    "keeps a ready workspace ready until its idle timeout, after a restart of the operator": {
      ...after({ state: "running" }, ready(500)),
      outcome: "unchanged",
      requeueAfterMs: 100_000,
    },
    "makes a workspace with a new spec not ready": {
      ...after({ state: "running" }, ready(), changed),
      outcome: "preparing",
    },
    "keeps the reported failure while it is retried": {
      ...after({ state: "running" }, notReady(60, "InstallationFailed"), retryAt(ago(1))),
      outcome: "preparing",
      reason: "InstallationFailed",
    },
    "keeps the reported failure if the agent has restarted before it is retried": {
      ...after({ state: "running" }, notReady(60, "InstallationFailed"), retryAt(now + 60_000)),
      outcome: "preparing",
      reason: "InstallationFailed",
    },
    "was superseded by another request": { ...after(failed({ reason: "superseded" })), outcome: "preparing" },
    "waits for a run": { ...after(busy), outcome: "waitingForRun", reason: "RollingUpdate" },
    "waits for a run, and a ready workspace stays ready": { ...after(busy, ready()), outcome: "unchanged" },
  });
});

describe("a successful preparation", () => {
  checkPlans({
    "makes the workspace ready": {
      ...after(succeeded),
      outcome: "ready",
      contains: '"address":"10.0.0.1:50051","pulumiVersion":"3.260.0"',
      reason: "Succeeded",
      requeueAfterMs: 600_000,
    },
    "is checked once an hour if the workspace never becomes idle, because its inputs are polled": {
      ...after(succeeded, ready(), given({ idleTimeoutMs: 0 })),
      outcome: "ready",
      requeueAfterMs: 3_600_000,
    },
    "reports the earlier commit from which no selected file differs": {
      ...after(unchanged),
      outcome: "ready",
      contains: '"unchangedSince":"c1"',
    },
    "is requeued for when the workspace becomes idle": {
      ...after(succeeded, ready(500)),
      outcome: "ready",
      requeueAfterMs: 100_000,
    },
    "reports an IPv6 address in brackets": {
      ...after(
        succeeded,
        pod({ agent: { workspace: { namespace: "team", name: "web" }, uid: "p", restarts: 0, ip: "fd00::1" } }),
      ),
      outcome: "ready",
      contains: "[fd00::1]:50051",
    },
    "warns if the state of a file backend would be lost": {
      ...after(succeeded, input({ ephemeralState: "/state" })),
      outcome: "ready",
      contains: "/state, which no volume keeps",
    },
    "passes on a warning about the stack": {
      ...after({ state: "done", result: { ok: true, prepared: { ...prepared, warning: "it has another provider" } } }),
      outcome: "ready",
      contains: '"warning":{"reason":"SecretsProviderIgnored","message":"it has another provider"}',
    },
  });
});

describe("a failed preparation", () => {
  checkPlans({
    "is reported if the program cannot be installed": {
      ...after(failed({ phase: "install", reason: "installFailed" })),
      outcome: "failed",
      reason: "InstallationFailed",
    },
    "is reported if the stack does not exist": {
      ...after(failed({ phase: "stack", reason: "stackNotFound" })),
      outcome: "failed",
      reason: "InitializationFailed",
      requeueAfterMs: 60_000,
    },
    "is reported if the source does not respond, and is retried soon": {
      ...after(failed({ reason: "sourceUnavailable" })),
      outcome: "failed",
      reason: "InitializationFailed",
      requeueAfterMs: 10_000,
    },
    "is reported if the CLI is too old": {
      ...after(failed({ phase: "config", reason: "versionTooLow" })),
      outcome: "failed",
      reason: "IncompatibleConfiguration",
    },
    "is requeued for the next attempt": {
      ...after(failed({ reason: "sourceUnavailable" }), retryAt(now + 7000)),
      outcome: "failed",
      requeueAfterMs: 7000,
    },
  });

  const prepareStep = (...traits: Trait[]): Step | undefined =>
    planWorkspace(view(set(), pod(), notReady(), ...traits)).steps.find(({ kind }) => kind === "prepare");

  test("is retried when the next attempt is due, and not before", () => {
    expect(prepareStep(retryAt(now + 1))).toMatchObject({ retry: false });
    expect(prepareStep(retryAt(now))).toMatchObject({ retry: true });
    expect(prepareStep()).toMatchObject({ retry: false });
  });
});

describe("an agent that does not respond", () => {
  checkPlans({
    "may not listen yet": { ...after(unreachable(2)), outcome: "preparing" },
    "is reported after ten seconds": { ...after(unreachable(10)), outcome: "unreachable", reason: "ConnectionFailed" },
    "may not be copied yet": { ...after(unreachable(20), pod({ mayLackAgent: true })), outcome: "preparing" },
    "is reported if it takes a minute to be copied": {
      ...after(unreachable(60), pod({ mayLackAgent: true })),
      outcome: "unreachable",
    },
    "is checked less often, the longer it does not respond": {
      ...after(unreachable(400), notReady(360, "ConnectionFailed")),
      outcome: "unreachable",
      requeueAfterMs: 90_000,
    },
    "leaves a ready workspace ready for a moment": { ...after(unreachable(2), ready()), outcome: "unchanged" },
    "makes a ready workspace not ready after a while": { ...after(unreachable(20), ready()), outcome: "unreachable" },
  });
});

describe("an agent that is about to start", () => {
  checkPlans({
    "may not listen yet": {
      ...after(unreachable(20), podStarting),
      outcome: "waiting",
      contains: "the pod is starting",
    },
    "may not have responded yet": { ...after({ state: "running" }, podStarting), outcome: "waiting" },
    "may respond before the kubelet reports that it runs": {
      ...after({ state: "running", phase: "install" }, podStarting),
      outcome: "preparing",
    },
    "may be done before the kubelet reports that it runs": { ...after(succeeded, podStarting), outcome: "ready" },
  });
});
