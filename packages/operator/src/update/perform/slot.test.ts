import { expect, test } from "bun:test";
import { manualClock, type Key } from "@pko/kube";

import { ofUpdate, slots, starting, type Slots } from "../../shared/channels/slots.ts";
import { workspaceKeyOf } from "../../shared/updates.ts";
import { sibling, viewOf, workspaceIs, workspaceReady, type ViewTrait } from "../testing/views.ts";
import { claimSlot, giveUpSlot, settleClaims } from "./slot.ts";

const view = viewOf();
const own = workspaceKeyOf(view.update);
const unready = { state: "notReady", message: "Installing." } as const;
const other: Key = "default/other";

const oneSlot = (): Slots =>
  slots({
    limits: { total: 1, inNamespace: () => 0 },
    updates: { active: () => [], subscribe: () => () => undefined },
    wake: () => undefined,
    clock: manualClock(),
  });

test("an Update that cannot start returns the slot, whoever took it", () => {
  for (const by of ["stack", "workspace", ofUpdate(view.update), starting(view.update)] as const) {
    const table = oneSlot();
    table.claim(own, by);
    giveUpSlot({ slots: table, view });
    expect([by, table.state(own).kind]).toEqual([by, "none"]);
  }
});

test("an Update that cannot start does not wait for a slot", () => {
  const table = oneSlot();
  table.claim(other, "stack");
  table.claim(own, ofUpdate(view.update));
  giveUpSlot({ slots: table, view });
  expect(table.state(own).kind).toBe("none");
});

test("an Update that loses its slot right before it starts stays in the queue", () => {
  const table = oneSlot();
  table.claim(other, "stack");
  expect(claimSlot({ slots: table, view }, { kind: "claimSlot", starts: true }).kind).toBe("replan");
  // At the end of the pass.
  table.withdraw(own, starting(view.update));
  table.withdraw(other, "stack");
  expect(table.state(own).kind).toBe("held");
});

test.each<[string, ViewTrait[], string]>([
  ["keeps it, in case the other is deleted", [workspaceReady, sibling("before")], "held"],
  ["keeps it also while the Workspace is woken", [workspaceIs(unready), sibling("before")], "held"],
  ["does not keep it without a Workspace", [sibling("before")], "none"],
  ["does not keep it if it is the first: it claims the slot itself", [workspaceReady], "none"],
])("an Update behind another one whose workspace has the slot %s", (_, traits, expected) => {
  const table = oneSlot();
  table.claim(own, "update/before");
  settleClaims({ slots: table, view: viewOf(...traits) });
  table.withdraw(own, "update/before");
  expect(table.state(own).kind).toBe(expected as never);
});

test("an Update behind another one does not wait for the slot a second time", () => {
  const table = oneSlot();
  table.claim(other, "stack");
  table.claim(own, "update/before");
  settleClaims({ slots: table, view: viewOf(workspaceReady, sibling("before")) });
  table.withdraw(own, "update/before");
  expect(table.state(own).kind).toBe("none");
});

test("an Update that cannot run does not withdraw the claim of another one", () => {
  const table = oneSlot();
  table.claim(own, "update/before");
  settleClaims({ slots: table, view });
  expect(table.state(own).kind).toBe("held");
});
