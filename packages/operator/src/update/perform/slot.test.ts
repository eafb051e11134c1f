import { expect, test } from "bun:test";
import { manualClock, type Key } from "@pko/kube";

import { slots, starting, type Slots } from "../../shared/channels/slots.ts";
import { workspaceKeyOf } from "../../shared/updates.ts";
import { viewOf } from "../testing/views.ts";
import { claimSlot, giveUpSlot } from "./slot.ts";

const view = viewOf();
const own = workspaceKeyOf(view.update);
const other: Key = "default/other";

const oneSlot = (): Slots =>
  slots({
    limits: { total: 1, inNamespace: () => 0 },
    updates: { active: () => [], subscribe: () => () => undefined },
    wake: () => undefined,
    clock: manualClock(),
  });

test("an Update that cannot start returns the slot, whoever took it", () => {
  for (const by of ["stack", "workspace", "update", starting(view.update)] as const) {
    const table = oneSlot();
    table.claim(own, by);
    giveUpSlot({ slots: table, view });
    expect([by, table.state(own).kind]).toEqual([by, "none"]);
  }
});

test("an Update that cannot start does not wait for a slot", () => {
  const table = oneSlot();
  table.claim(other, "stack");
  table.claim(own, "update");
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
