import { expect } from "bun:test";

import * as messages from "../messages.ts";
import { updateStatus } from "../status.ts";
import { containing, hour, minute, table, waits, writesNothing } from "../testing/plans.ts";
import {
  createdAgo,
  noPod,
  noon,
  podIs,
  sibling,
  viewOf,
  withFinalizer,
  withStatus,
  workspaceIs,
  workspaceReady,
  type ViewTrait,
} from "../testing/views.ts";
import type { UpdateView } from "../view.ts";

const slotIs =
  (slot: UpdateView["slot"]): ViewTrait =>
  (view) => ({ ...view, slot });
const notCleared: ViewTrait = (view) => ({ ...view, isCleared: false });
const thirdInLine = {
  kind: "waiting",
  position: 3,
  total: 12,
  limitOf: "operator",
  limit: 20,
  refreshAt: noon + 30_000,
} as const;

const missing = { kind: "waiting", reason: "WorkspaceNotFound", message: messages.workspaceMissing("web") } as const;

const waitsFor = (name: string) => ({
  ...waits("WorkspaceNotReady"),
  status: { conditions: [{ message: messages.notFirst(name) }, {}, {}, {}] },
});

table("an Update that has not started", [
  ["waits for a Workspace that does not exist", [], waits("WorkspaceNotFound")],
  ["waits while its Workspace is being deleted", [workspaceIs({ state: "deleting" })], waits("WorkspaceNotReady")],
  [
    "reports why its Workspace is not ready",
    [workspaceIs({ state: "notReady", message: "Installing dependencies." })],
    {
      ...waits("WorkspaceNotReady"),
      status: { conditions: [{ message: containing("Installing") }, {}, {}, {}] },
    },
  ],
  ["takes a slot before it starts", [workspaceReady, slotIs({ kind: "none" })], { steps: [{ kind: "claimSlot" }] }],
  [
    "takes a slot before its Workspace is woken",
    [workspaceIs({ state: "idle" }), slotIs({ kind: "none" })],
    { steps: [{ kind: "claimSlot", starts: false }], isWritten: false },
  ],
  [
    "waits for a slot, and shows its position",
    [workspaceReady, slotIs(thirdInLine)],
    {
      ...waits("WaitingForSlot"),
      requeueAt: noon + 30_000,
      status: { conditions: [{ message: containing("position 3 of 12") }, {}, {}, {}] },
    },
  ],
  [
    "needs no slot while its Workspace is being prepared",
    [workspaceIs({ state: "notReady", message: "Installing." }), slotIs({ kind: "none" })],
    waits("WorkspaceNotReady"),
  ],
  [
    "needs no slot while another Update runs in the Workspace",
    [workspaceReady, sibling("web-0", { hasStarted: true }), slotIs({ kind: "none" })],
    waitsFor("web-0"),
  ],
  [
    "waits while its Workspace is being woken, and names it",
    [workspaceIs({ state: "idle" })],
    {
      ...waits("WorkspaceNotReady"),
      status: { conditions: [{ message: "The Workspace web is being woken." }, {}, {}, {}] },
    },
  ],
  [
    "waits for a Workspace with other stacks that is being prepared for a new spec, which may have its stack",
    [workspaceIs({ state: "otherStack", stacks: ["prod"], isPrepared: false })],
    { ...waits("WorkspaceNotReady"), status: { conditions: [{ message: containing("prod") }, {}, {}, {}] } },
  ],
  [
    "waits while another Update runs in the Workspace, and names it",
    [workspaceReady, sibling("earlier"), sibling("web-0", { hasStarted: true, createdAgoMs: 0 })],
    waitsFor("web-0"),
  ],
  [
    "waits while another Update that was deleted still runs in the Workspace",
    [workspaceReady, sibling("web-0", { hasStarted: true, isDeleting: true })],
    waitsFor("web-0"),
  ],
  [
    "waits for the first of the Updates that were created earlier",
    [
      workspaceReady,
      sibling("web-b", { createdAgoMs: 90_000 }),
      sibling("web-a"),
      sibling("web-c", { createdAgoMs: 80_000 }),
    ],
    waitsFor("web-a"),
  ],
  [
    "waits for an Update of the same second whose name sorts first",
    [workspaceReady, sibling("a", { createdAgoMs: 60_000 }), sibling("z", { createdAgoMs: 60_000 })],
    waitsFor("a"),
  ],
  [
    "does not wait for Updates that were created later, are deleted, or can never run in the Workspace",
    [
      workspaceReady,
      withFinalizer,
      sibling("later", { createdAgoMs: 0 }),
      sibling("deleted", { isDeleting: true }),
      sibling("typo", { canRun: false }),
    ],
    { outcome: { kind: "started" } },
  ],
  ["waits while the pod of the address does not exist", [workspaceReady, noPod], waits("WorkspaceNotReady")],
  [
    "waits, without reporting it, until its Workspace has read its Secrets again",
    [workspaceReady, notCleared, createdAgo(29_000)],
    { ...writesNothing, requeueAt: expect.any(Number) as number },
  ],
  [
    "reports that its Workspace is checked or prepared first, once it has waited for half a minute",
    [workspaceReady, notCleared, createdAgo(30_000)],
    {
      ...waits("WorkspaceNotReady"),
      status: { conditions: [{ message: messages.preparedFirst("web") }, {}, {}, {}] },
      requeueAt: expect.any(Number) as number,
    },
  ],
  [
    "is requeued for that after five seconds, if it is new",
    [workspaceReady, notCleared, createdAgo(0)],
    { ...writesNothing, requeueAt: noon + 5_000 },
  ],
  [
    "is requeued for that every minute once it has waited long",
    [workspaceReady, notCleared, createdAgo(hour)],
    { ...waits("WorkspaceNotReady"), requeueAt: noon + minute },
  ],
  [
    "waits while the pod is terminating",
    [workspaceReady, podIs("pod-a", { isDeleting: true })],
    waits("WorkspaceNotReady"),
  ],
  [
    "waits while the pod has another address",
    [workspaceReady, podIs("pod-a", { ip: "10.0.0.9" })],
    waits("WorkspaceNotReady"),
  ],
  ["does not write the same status twice", [withStatus(updateStatus(viewOf(), { outcome: missing }))], writesNothing],
  ["has no finalizer while it waits", [workspaceIs({ state: "idle" })], { steps: [] }],
]);
