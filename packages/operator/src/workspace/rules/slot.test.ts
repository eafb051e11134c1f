import { describe, expect, test } from "bun:test";

import { checkPlans } from "../testing/cases.ts";
import {
  ago,
  changed,
  given,
  now,
  notReady,
  pod,
  podDown,
  ready,
  set,
  specified,
  update,
  view,
  withoutAddress,
  wokenFor,
  type Trait,
} from "../testing/views.ts";
import type { WorkspaceView } from "../view.ts";
import { planWorkspace } from "./index.ts";
import { slotUse } from "./slot.ts";

const slotIs = (slot: WorkspaceView["slot"]): Trait => given({ slot });
const none = slotIs({ kind: "none" });
const waiting = slotIs({
  kind: "waiting",
  position: 3,
  total: 12,
  limitOf: "namespace",
  limit: 10,
  refreshAt: now + 30_000,
});
const asleep = [ready(), withoutAddress, set({ replicas: 0 })];

describe("a Workspace takes a slot", () => {
  checkPlans({
    "before its pod is created": { when: [none], steps: ["claimSlot"], outcome: "unchanged" },
    "before it is woken for an Update": {
      when: [...asleep, update("waiting"), none],
      steps: ["claimSlot"],
      outcome: "unchanged",
    },
    "but not for an Update that waits for one itself": {
      when: [...asleep, update("queued"), none],
      steps: ["forgetPreparation"],
      outcome: "idle",
    },
    "but not if a person needs the pod": {
      when: [...asleep, wokenFor(60), none],
      steps: ["applyObjects"],
      outcome: "waiting",
    },
    "but not if it has a pod": { when: [notReady(), set(), pod(), none], steps: ["prepare"], outcome: "preparing" },
    "but not if its pod is replaced": {
      when: [notReady(), set({ builtHash: "old" }), pod(), none],
      steps: ["applyObjects"],
      outcome: "rolling",
    },
    "and waits without creating anything": {
      when: [waiting],
      outcome: "waitingForSlot",
      contains:
        "all 10 slots of the namespace are in use (controller.maxConcurrentUpdatesPerNamespace, or maxConcurrentUpdates of the WorkspaceClass): position 3 of 12",
      reason: "WaitingForSlot",
      requeueAfterMs: 30_000,
    },
  });

  test.each([
    ["keeps its place after a restart", "WaitingForSlot", ago(60)],
    ["starts to wait now if it waited for something else", "InstallationFailed", now],
  ])("%s", (_, reason, rank) => {
    expect(planWorkspace(view(notReady(60, reason), none)).steps).toEqual([{ kind: "claimSlot", rank }]);
  });
});

describe("the slot of a Workspace", () => {
  const heldFor = (seconds: number): Trait => slotIs({ kind: "held", forMs: seconds * 1000, isWanted: true });
  const unwanted = slotIs({ kind: "held", forMs: 600_000, isWanted: false });
  const invalid = specified({ stacks: [{ name: "" }] });
  const unschedulable = podDown("no node", { isUnschedulable: true });

  test.each<[string, Trait[], string]>([
    ["is kept while its pod is created", [heldFor(299)], "kept"],
    [
      "is kept while its pod does not start, for five minutes",
      [notReady(), set(), unschedulable, heldFor(299)],
      "kept",
    ],
    ["is kept for longer if nobody else needs it", [notReady(), set(), unschedulable, unwanted], "kept"],
    ["is then given up, so that others can run", [notReady(), set(), unschedulable, heldFor(300)], "givenUp"],
    ["is kept while it is prepared, however long that takes", [notReady(), set(), pod(), heldFor(9000)], "kept"],
    ["is given up if its spec is invalid", [invalid], "givenUp"],
    ["is given up if its spec is invalid, and its status does not show it yet", [notReady(), invalid], "givenUp"],
    [
      "is given up when its new spec is invalid, too",
      [notReady(60, "InitializationFailed"), changed, invalid],
      "givenUp",
    ],
    ["stays with the Stack that is about to fix a failure", [notReady(60, "InitializationFailed"), invalid], "ended"],
    [
      "is given up if the failure is not fixed after five minutes",
      [notReady(60, "InitializationFailed"), invalid, heldFor(300)],
      "givenUp",
    ],
    ["is no longer needed when it is idle", asleep, "ended"],
  ])("%s", (_, traits, use) => {
    const observed = view(...traits);
    expect(slotUse(observed, planWorkspace(observed))).toBe(use as never);
  });

  describe("that others wait for", () => {
    const unreachable = given({ preparation: { state: "unreachable", message: "refused", sinceMs: ago(300) } });
    checkPlans({
      "is returned together with the pod that has not started": {
        when: [notReady(), set(), unschedulable, heldFor(300)],
        steps: ["scaleToZero"],
        outcome: "waiting",
        contains: "has not started for five minutes: no node; it is deleted",
      },
      "is returned also if an Update waits for the pod": {
        when: [notReady(), set(), unschedulable, update("waiting"), heldFor(300)],
        steps: ["scaleToZero"],
        outcome: "waiting",
      },
      "is returned if there is no pod": {
        when: [notReady(), set(), heldFor(300)],
        steps: ["scaleToZero"],
        outcome: "waiting",
      },
      "is returned if the agent does not respond": {
        when: [notReady(), set(), pod(), unreachable, heldFor(300)],
        steps: ["scaleToZero"],
        outcome: "waiting",
        contains: "refused",
      },
      "is kept until a StatefulSet has been deleted": {
        when: [notReady(), set({ isDeleting: true }), unschedulable, heldFor(300)],
        outcome: "waiting",
      },
      "is kept while a StatefulSet that is scaled to zero deletes its pod": {
        when: [notReady(), set({ replicas: 0 }), podDown("terminating", { isDeleting: true }), heldFor(300)],
        steps: ["applyObjects"],
        outcome: "waiting",
      },
      "is returned with the reason of the pod, if the agent could not respond because of it": {
        when: [notReady(), set(), unschedulable, unreachable, heldFor(300)],
        steps: ["scaleToZero"],
        outcome: "waiting",
        contains: "no node",
      },
      "is needed again before the pod is created again": {
        when: [notReady(), set({ replicas: 0 }), podDown("terminating", { isDeleting: true }), none],
        steps: ["claimSlot"],
        outcome: "unchanged",
      },
      "shows meanwhile why the pod did not start": {
        when: [notReady(), set({ replicas: 0, notStarted: "no such image" }), waiting],
        outcome: "waitingForSlot",
        contains: "has not started for five minutes: no such image; it is created again when",
      },
    });
  });

  test("is kept for an Update that waits in a ready Workspace", () => {
    const plan = { steps: [], outcome: { kind: "ready", address: "10.0.0.1:50051" } } as const;
    expect(slotUse(view(update("waiting")), plan)).toBe("kept");
    expect(slotUse(view(update("ended")), plan)).toBe("ended");
    expect(slotUse(view(), { steps: [], outcome: { kind: "nodeLost", message: "" } })).toBe("givenUp");
  });

  test("is given up if its pod is not replaced after five minutes", () => {
    const plan = { steps: [], outcome: { kind: "rolling", message: "" } } as const;
    expect(slotUse(view(heldFor(299)), plan)).toBe("kept");
    expect(slotUse(view(heldFor(300)), plan)).toBe("givenUp");
  });
});
