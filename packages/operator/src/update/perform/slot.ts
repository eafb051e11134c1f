/** The slot that an Update needs to run. */
import { stepDone, type Performed } from "@pko/kube";

import { starting, type Claimant, type Slots } from "../../shared/channels/slots.ts";
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
  const rank = parseTimestamp(update.metadata.creationTimestamp) ?? Infinity;
  const claim = (by: Claimant) => slots.claim(workspaceKeyOf(update), by, { rank });
  if (starts && claim(starting(update)).kind === "held") return stepDone;
  // It waits with this claim: the one for the start ends with the pass.
  return { kind: "replan", facts: { slot: claim("update") } };
}

export function giveUpSlot({ slots, view: { update } }: Claimer): void {
  const workspace = workspaceKeyOf(update);
  slots.giveUp(workspace);
  for (const by of ["update", starting(update)] as const) slots.withdraw(workspace, by);
}
