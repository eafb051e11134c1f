/** The slot that an Update needs to run. */
import { stepDone, type Performed } from "@pko/kube";

import { starting, type Slots } from "../../shared/channels/slots.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { workspaceKeyOf } from "../../shared/updates.ts";
import type { Step } from "../steps.ts";
import type { UpdateView } from "../view.ts";

export type SlotClaims = Pick<Slots, "claim" | "withdraw" | "giveUp">;

interface Claimer {
  readonly slots: SlotClaims;
  readonly view: UpdateView;
}

/** An Update that is about to start keeps the slot even if nobody else needs it. */
export function claimSlot(
  { slots, view: { update } }: Claimer,
  { starts }: Extract<Step, { kind: "claimSlot" }>,
): Performed<UpdateView> {
  const since = parseTimestamp(update.metadata.creationTimestamp);
  const slot = slots.claim(workspaceKeyOf(update), starts ? starting(update) : "update", since);
  return starts && slot.kind === "held" ? stepDone : { kind: "replan", facts: { slot } };
}

export function giveUpSlot({ slots, view: { update } }: Claimer): void {
  const workspace = workspaceKeyOf(update);
  slots.giveUp(workspace);
  for (const by of ["update", starting(update)] as const) slots.withdraw(workspace, by);
}
