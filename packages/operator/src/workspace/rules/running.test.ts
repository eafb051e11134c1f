import { describe } from "bun:test";

import { checkPlans } from "../testing/cases.ts";
import { changed, input, notReady, pod, podDown, ready, set, specified, update } from "../testing/views.ts";

const noSource = input({ requested: { kind: "incomplete", message: "there is no Program web", soon: true } });

describe("a running Update", () => {
  checkPlans({
    "is left alone": { when: [ready(), set(), pod(), update("onPod")], outcome: "unchanged" },
    "is prepared for in the same pod if the agent cannot start it": {
      when: [ready(), set({ builtHash: "old" }), pod(), update("onPod", { isUnprepared: true })],
      steps: ["prepare"],
      outcome: "preparing",
    },
    "that the agent cannot start waits for a missing source": {
      when: [ready(), noSource, set(), pod(), update("onPod", { isUnprepared: true })],
      outcome: "misconfigured",
      contains: "there is no Program web",
    },
    "that the agent cannot start does not delay a better template if its pod stays down": {
      when: [notReady(300), set({ builtHash: "old" }), podDown("no"), update("onPod", { isUnprepared: true })],
      steps: ["applyObjects"],
      outcome: "rolling",
    },
    "that the agent cannot start is not prepared for in a terminating pod": {
      when: [notReady(), set(), pod({ isDeleting: true }), update("onPod", { isUnprepared: true })],
      outcome: "rolling",
    },
    "is requeued although the new spec is invalid, so that its certificate is renewed in time": {
      when: [specified({ git: {} }), set(), pod(), update("onPod")],
      outcome: "misconfigured",
      requeueAfterMs: 60_000,
    },
    "is left alone although the template has changed": {
      when: [ready(), set({ builtHash: "old" }), pod(), update("onPod")],
      outcome: "unchanged",
    },
    "delays a new spec, and the status reports it": {
      when: [ready(), changed, set(), pod(), update("onPod")],
      outcome: "waitingForRun",
      contains: "the new spec waits for the update onPod-0 to finish",
    },
    "delays a workspace that was not ready": {
      when: [notReady(), set(), pod(), update("onPod")],
      outcome: "waitingForRun",
      contains: "the workspace waits",
    },
    "is waited for while its pod may come up again": {
      when: [notReady(30), set({ builtHash: "old" }), podDown("it ran out of memory"), update("onPod")],
      outcome: "waiting",
      contains: "out of memory",
    },
    "does not delay a better template if its pod stays down for two minutes": {
      when: [notReady(120), set({ builtHash: "old" }), podDown("it ran out of memory"), update("onPod")],
      steps: ["applyObjects"],
      outcome: "rolling",
    },
    "delays nothing in a terminating pod": {
      when: [notReady(), set(), podDown("the former pod is terminating", { isDeleting: true }), update("onPod")],
      outcome: "rolling",
    },
    "delays nothing if its pod does not exist": { when: [notReady(5), set(), update("waiting")], outcome: "waiting" },
    "keeps its workspace from being scaled to zero": {
      when: [ready(9999), set(), pod(), update("onPod")],
      outcome: "unchanged",
    },
  });
});
