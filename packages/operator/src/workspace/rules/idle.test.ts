import { describe, expect, test } from "bun:test";

import { checkPlans } from "../testing/cases.ts";
import {
  ago,
  changed,
  given,
  input,
  notReady,
  now,
  pod,
  podDown,
  podStarting,
  ready,
  retryAt,
  set,
  shortage,
  update,
  view,
  withoutAddress,
  wokenFor,
  type Trait,
} from "../testing/views.ts";
import { planWorkspace } from "./index.ts";

const losesState = input({ ephemeralState: "/state" });
const scaleToZero = ["scaleToZero", "forgetPreparation"] as const;
const wake = ["applyObjects"] as const;
const waitingForSlot = given({
  slot: { kind: "waiting", position: 1, total: 1, limitOf: "operator", limit: 1, refreshAt: now + 30_000 },
});

describe("a workspace without work", () => {
  const idleFor = (seconds: number): Trait[] => [ready(seconds), withoutAddress, set(), pod()];
  checkPlans({
    "loses its address after the idle timeout": {
      when: [ready(601), set(), pod()],
      outcome: "idle",
      requeueAfterMs: 2000,
    },
    "loses its address as soon as the idle timeout is over": {
      when: [ready(600), set(), pod()],
      outcome: "idle",
      requeueAfterMs: 2000,
    },
    "is scaled to zero after that": { when: idleFor(601), steps: scaleToZero, outcome: "idle" },
    "keeps its pod before the idle timeout": {
      when: [ready(599), set(), pod()],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "keeps its pod for the timeout after its last Update": {
      when: [ready(5000), set(), pod(), update("ended", { endedAt: ago(10) }), update("ended", { endedAt: ago(900) })],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "becomes idle if only a clock that was wrong could have recorded when it became ready": {
      when: [ready(-86_400), set(), pod()],
      outcome: "idle",
      requeueAfterMs: 2000,
    },
    "keeps its pod if it became ready a moment ago by a clock that is ahead": {
      when: [ready(-2), set(), pod()],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "becomes idle when its last Update ended that long ago": {
      when: [ready(5000), set(), pod(), update("ended", { endedAt: ago(700) }), update("ended", { endedAt: ago(900) })],
      outcome: "idle",
    },
    "keeps its pod forever with a timeout of 0": {
      when: [ready(99_999), set(), pod(), given({ idleTimeoutMs: 0 })],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "becomes idle after its own timeout": {
      when: [ready(61), set(), pod(), given({ idleTimeoutMs: 60_000 })],
      outcome: "idle",
    },
    "keeps its pod while an Update waits": {
      when: [ready(5000), set(), pod(), update("waiting")],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "keeps its pod if an Update is created after it lost its address": {
      when: [...idleFor(601), update("waiting")],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "keeps its pod until it was ready": {
      when: [notReady(9999), set(), pod()],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "keeps its pod for a new spec": {
      when: [ready(9999), changed, set(), pod()],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "keeps its pod if the state of a file backend would be lost with it": {
      when: [ready(9999), set(), pod(), losesState],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "keeps its pod while a person needs it": {
      when: [ready(9999), set(), pod(), wokenFor(60)],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "keeps its pod for its timeout, even if a person needs it for less": {
      when: [ready(599), set(), pod(), wokenFor(-1)],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "becomes idle when the person's time is over": { when: [ready(601), set(), pod(), wokenFor(-1)], outcome: "idle" },
    "becomes idle if a person wants it for longer than eight hours": {
      when: [ready(601), set(), pod(), wokenFor(8 * 3600 + 1)],
      outcome: "idle",
    },
    "becomes idle sooner if it is preempted for an unschedulable pod": {
      when: [ready(20), set(), pod(), shortage("web")],
      outcome: "idle",
    },
    "keeps its pod if another workspace is preempted": {
      when: [ready(20), set(), pod(), shortage("other")],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "is not preempted before its own Update can have been created": {
      when: [ready(2), set(), pod(), shortage("web")],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "is not preempted if the state of a file backend would be lost": {
      when: [ready(20), set(), pod(), losesState, shortage("web")],
      steps: ["prepare"],
      outcome: "preparing",
    },
  });
});

describe("a failed workspace", () => {
  const failed = (seconds: number): Trait[] => [
    notReady(seconds, "InstallationFailed"),
    set(),
    pod(),
    retryAt(now + 60_000),
  ];
  const backedOff: Trait[] = [notReady(999, "InstallationFailed"), set({ replicas: 0, backedOffGeneration: 2 })];
  checkPlans({
    "is scaled to zero after the idle timeout, and its status stays": {
      when: failed(601),
      steps: scaleToZero,
      outcome: "unchanged",
    },
    "keeps its pod before the idle timeout": { when: failed(599), steps: ["prepare"], outcome: "preparing" },
    "keeps its pod while it is retried": {
      when: [...failed(9999), retryAt(Infinity)],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "keeps its pod when a retry is due": {
      when: [...failed(9999), retryAt(now)],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "keeps its pod until this process knows that it still fails": {
      when: [notReady(9999, "InstallationFailed"), set(), pod()],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "keeps its pod while an Update waits": {
      when: [...failed(9999), update("waiting")],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "keeps its pod if the state of a file backend would be lost with it": {
      when: [...failed(9999), losesState],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "is scaled to zero sooner if it is preempted for an unschedulable pod": {
      when: [...failed(20), shortage("web")],
      steps: scaleToZero,
      outcome: "unchanged",
    },
    "stays scaled to zero until the next attempt": {
      when: [...backedOff, retryAt(now + 5000)],
      steps: ["forgetPreparation"],
      outcome: "unchanged",
      requeueAfterMs: 5000,
    },
    "stays scaled to zero, and keeps its failure, if its pod does not terminate": {
      when: [...backedOff, retryAt(now + 5000), pod({ isDeleting: true, terminatingSince: ago(61) })],
      steps: ["deletePod"],
      outcome: "unchanged",
    },
    "stays scaled to zero if an earlier process scaled it": {
      when: backedOff,
      steps: ["forgetPreparation"],
      outcome: "unchanged",
      requeueAfterMs: 600_000,
    },
    "gets a new pod for the next attempt, and its status stays": {
      when: [...backedOff, retryAt(now)],
      steps: wake,
      outcome: "waiting",
      reason: "InstallationFailed",
    },
    "gets a new pod if an attempt is in progress: it began before the store showed that the pod is scaled to zero": {
      when: [...backedOff, retryAt(Infinity)],
      steps: wake,
      outcome: "waiting",
      reason: "InstallationFailed",
    },
    "is woken by a new spec, and reports it": {
      when: [...backedOff, changed],
      steps: wake,
      outcome: "waiting",
      reason: "WaitingForReplicas",
    },
    "is woken by an Update, and reports it": {
      when: [...backedOff, update("waiting"), retryAt(now + 60_000)],
      steps: wake,
      outcome: "waiting",
      reason: "WaitingForReplicas",
    },
    "is woken for a person, and reports it": {
      when: [...backedOff, wokenFor(60), retryAt(now + 60_000)],
      steps: wake,
      outcome: "waiting",
      reason: "WaitingForReplicas",
    },
    "gets a pod if it was not backed off": {
      when: [notReady(60, "InitializationFailed"), set({ replicas: 0 })],
      steps: wake,
      outcome: "waiting",
    },
  });
});

test("a failed workspace is scaled to zero for its current generation only", () => {
  const failed = view(notReady(601, "InstallationFailed"), set(), pod(), retryAt(now + 60_000));
  expect(planWorkspace(failed).steps).toMatchObject([{ backedOffGeneration: 2 }, { kind: "forgetPreparation" }]);
});

describe("a failed workspace in a new pod", () => {
  const failed = notReady(999, "InstallationFailed");
  const attempt = given({ retry: { failures: 5, at: Infinity, since: ago(2) } });
  const retried: Trait[] = [failed, set(), attempt];
  checkPlans({
    "keeps its status until the pod exists": {
      when: retried,
      outcome: "waiting",
      reason: "InstallationFailed",
      requeueAfterMs: 5000,
    },
    "keeps its status until the former pod is deleted": {
      when: [...retried, podDown("the former pod is terminating", { isDeleting: true })],
      outcome: "rolling",
      reason: "InstallationFailed",
    },
    "keeps its status until the pod is up": {
      when: [...retried, podDown()],
      outcome: "waiting",
      reason: "InstallationFailed",
    },
    "keeps its status until the agent listens": {
      when: [...retried, podStarting],
      steps: ["prepare"],
      outcome: "waiting",
      reason: "InstallationFailed",
    },
    "keeps its status while it is prepared": {
      when: [...retried, pod(), given({ preparation: { state: "running", phase: "install" } })],
      outcome: "preparing",
      reason: "InstallationFailed",
    },
    "keeps its status while it waits for a slot": {
      when: [failed, set({ replicas: 0 }), retryAt(now), waitingForSlot],
      outcome: "waitingForSlot",
      reason: "InstallationFailed",
    },
    "shows why the pod is not created: a dry run finds it out after ten seconds": {
      when: [failed, set(), given({ retry: { failures: 5, at: Infinity, since: ago(10) } })],
      steps: ["dryRunPod"],
      outcome: "waiting",
    },
    "shows that admission rejects the pod": {
      when: [...retried, given({ admission: { kind: "rejected", message: "exceeded quota: q" } })],
      outcome: "waiting",
      reason: "WaitingForReplicas",
    },
    "shows that the pod cannot start": {
      when: [...retried, podDown("the image a cannot be pulled: denied")],
      outcome: "waiting",
      reason: "WaitingForReplicas",
    },
    "shows that the agent does not respond": {
      when: [...retried, pod(), given({ preparation: { state: "unreachable", message: "refused", sinceMs: ago(20) } })],
      outcome: "unreachable",
      reason: "ConnectionFailed",
    },
    "shows the progress of a new spec": {
      when: [failed, set(), changed, podDown()],
      outcome: "waiting",
      reason: "WaitingForReplicas",
    },
    "shows its progress if the spec was wrong before, and nothing was prepared": {
      when: [notReady(60, "InitializationFailed"), set(), podDown()],
      outcome: "waiting",
      reason: "WaitingForReplicas",
    },
  });
});

describe("an idle workspace", () => {
  const idle: Trait[] = [ready(5000), withoutAddress, set({ replicas: 0 })];
  checkPlans({
    "stays idle: nothing is read or written": { when: idle, steps: ["forgetPreparation"], outcome: "idle" },
    "stays idle while its former pod terminates, which is checked after a minute": {
      when: [...idle, pod({ isDeleting: true })],
      steps: ["forgetPreparation"],
      outcome: "idle",
      requeueAfterMs: 60_000,
    },
    "shortens the grace period of a former pod that does not terminate": {
      when: [...idle, pod({ isDeleting: true, terminatingSince: ago(61) })],
      steps: ["deletePod"],
      outcome: "idle",
    },
    "may have no StatefulSet": { when: [ready(), withoutAddress], steps: ["forgetPreparation"], outcome: "idle" },
    "is woken by an Update": { when: [...idle, update("waiting")], steps: wake, outcome: "waiting" },
    "is woken for a person": { when: [...idle, wokenFor(60)], steps: wake, outcome: "waiting" },
    "stays idle if the person's time is over": {
      when: [...idle, wokenFor(-1)],
      steps: ["forgetPreparation"],
      outcome: "idle",
    },
    "is woken by a new spec": {
      when: [ready(5000), withoutAddress, changed, set({ replicas: 0 })],
      steps: wake,
      outcome: "waiting",
    },
    "was ready: a workspace scaled to zero that never was gets a pod": {
      when: [notReady(), set({ replicas: 0 })],
      steps: wake,
      outcome: "waiting",
    },
  });
});
