import { describe, expect, test } from "bun:test";

import { planStack } from "./index.ts";
import { stackStatus } from "../status.ts";
import {
  ago,
  anUpdate,
  cases,
  failed,
  messageFor,
  now,
  prerequisite,
  program,
  succeeded,
  viewOf,
  type Setting,
} from "../testing/views.ts";
import type { StackView } from "../view.ts";
import { needsSlot } from "./slot.ts";

const none: StackView["slot"] = { kind: "none" };
const waiting: StackView["slot"] = {
  kind: "waiting",
  position: 12,
  total: 30,
  limitOf: "operator",
  limit: 20,
  refreshAt: now + 30_000,
};

cases("an update that is due takes a slot", [
  ["before the Workspace is created", { workspace: "absent", slot: none }, "claimSlot: unchanged"],
  ["before the Workspace is changed", { workspace: "other", slot: none }, "claimSlot: unchanged"],
  ["before the Update is created", { slot: none }, "claimSlot: unchanged"],
  [
    "to destroy",
    { deleting: true, spec: { destroyOnFinalize: true }, last: succeeded(), slot: none },
    "claimSlot: unchanged",
  ],
  [
    "also for a drift check",
    { spec: { driftDetection: { intervalSeconds: 3600 } }, last: succeeded({ lastResyncTime: ago(9000) }), slot: none },
    "claimSlot: unchanged",
  ],
  ["once its inputs are checked", { slot: none, missing: "unchecked" }, "checkInputs: unchanged"],
  ["unless an input is missing", { slot: none, missing: ["there is no Secret token"] }, "none: SpecInvalid"],
  ["but waits for its Workspace without one", { slot: none, workspace: "preparing" }, "none: StackProcessing"],
  [
    "but reports a failed Workspace without one",
    { slot: none, workspace: { failed: "InstallationFailed" } },
    "none: WorkspaceFailed",
  ],
]);

cases("an update that has no slot waits", [
  ["and nothing is created", { workspace: "absent", slot: waiting }, "none: WaitingForSlot"],
  ["although the Workspace is ready", { slot: waiting }, "none: WaitingForSlot"],
  [
    "while a drift check waits, the Stack stays Ready",
    {
      spec: { driftDetection: { intervalSeconds: 3600 } },
      last: succeeded({ lastResyncTime: ago(9000) }),
      slot: waiting,
    },
    "none: Ready",
  ],
]);

describe("a Stack that waits for a slot", () => {
  test("shows its position and the limit", () => {
    expect(messageFor({ slot: waiting })).toBe(
      "The up for the first update is due, but all 20 slots of the operator are in use (controller.maxConcurrentUpdates). " +
        "It starts when its turn comes: position 12 of 30 in the queue.",
    );
    const ofNamespace = { ...waiting, limitOf: "namespace", limit: 10 } as const;
    expect(messageFor({ slot: ofNamespace })).toContain("all 10 slots of the namespace are in use");
  });

  test("is requeued when its position is determined again", () => {
    expect(planStack(viewOf({ slot: waiting })).requeueAt).toBe(now + 30_000);
  });

  const waitingStatus = (slot: StackView["slot"], status: NonNullable<Setting["status"]>) => {
    const view = viewOf({ slot, status });
    return stackStatus(view, planStack(view)).waiting;
  };

  test("keeps the time since when it waits while its position changes", () => {
    const before = { waiting: { for: "a free slot (position 13 of 30)", since: ago(600) } };
    expect(waitingStatus(waiting, before)).toEqual({ for: "a free slot (position 12 of 30)", since: ago(600) });
    expect(waitingStatus(waiting, { waiting: { for: "Stack base", since: ago(600) } })?.since).toBe(ago(0));
  });

  test.each([
    [
      "keeps its place after a restart",
      "a free slot (position 13 of 30)",
      { rank: now - 600_000, since: now - 600_000 },
    ],
    [
      "is first after a restart if it had a slot, because its Workspace was being prepared",
      "Workspace web",
      { rank: 0 },
    ],
    ["starts to wait now if it waited for something else", "Stack base", {}],
  ])("%s", (_, what, turn) => {
    const view = viewOf({ slot: none, status: { waiting: { for: what, since: ago(600) } } });
    expect(planStack(view).steps).toEqual([{ kind: "claimSlot", turn }]);
  });
});

describe("a Stack needs its slot", () => {
  test.each<[string, Setting, boolean]>([
    ["while it waits for one", { slot: waiting }, true],
    ["while its Workspace is prepared", { workspace: "preparing" }, true],
    ["while its Update is unfinished", { last: succeeded(), updates: [anUpdate()] }, true],
    ["not if nothing is due", { last: succeeded() }, false],
    ["not while it is suspended", { spec: { suspend: true } }, false],
    ["not while it waits for another Stack", { prerequisites: [prerequisite({ last: "failed" })] }, false],
    ["not between retries", { last: failed() }, false],
    ["not while its Workspace cannot be prepared", { workspace: { failed: "InstallationFailed" } }, false],
    ["not while an input is missing", { workspace: "absent", missing: ["there is no Secret token"] }, false],
    [
      "not while no update window is open",
      { spec: { updateWindows: [{ schedule: "0 3 * * *", durationSeconds: 3600 }] }, source: program(2) },
      false,
    ],
  ])("%s", (_, setting, needs) => {
    const view = viewOf(setting);
    expect(needsSlot(view, planStack(view))).toBe(needs);
  });
});
