/** The slot that an Update needs to run. */
import type { Update } from "@pko/api";
import { stepDone, type Performed } from "@pko/kube";

import { ofUpdate, starting, type Claimant, type Slots } from "../../shared/channels/slots.ts";
import { parseTimestamp } from "../../shared/parse-timestamp.ts";
import { workspaceKeyOf } from "../../shared/updates.ts";
import { needsSlot } from "../rules/slot.ts";
import { updateBefore } from "../rules/waiting.ts";
import type { Step } from "../steps.ts";
import type { UpdateView } from "../view.ts";

export type SlotClaims = Pick<Slots, "state" | "claim" | "withdraw" | "giveUp">;

interface Claimer {
  readonly slots: SlotClaims;
  readonly view: UpdateView;
}

/** An Update that is about to start keeps the slot even if nobody else needs it. */
export function claimSlot(
  { slots, view: { update } }: Claimer,
  { starts }: Extract<Step, { kind: "claimSlot" }>,
): Performed<UpdateView> {
  const rank = rankOf(update);
  const claim = (by: Claimant) => slots.claim(workspaceKeyOf(update), by, { rank });
  if (starts && claim(starting(update)).kind === "held") return stepDone;
  // It waits with this claim: the one for the start ends with the pass.
  return { kind: "replan", facts: { slot: claim(ofUpdate(update)) } };
}

const rankOf = ({ metadata }: Update): number => parseTimestamp(metadata.creationTimestamp) ?? Infinity;

/** At the end of a pass after which the Update waits. */
export function settleClaims({ slots, view }: Claimer): void {
  const { update } = view;
  const workspace = workspaceKeyOf(update);
  slots.withdraw(workspace, starting(update));
  if (!needsSlot(view)) slots.withdraw(workspace, ofUpdate(update));
  // The Update before it may be deleted, and must not take the slot of the workspace with it.
  else if (updateBefore(view) && slots.state(workspace).kind === "held") {
    slots.claim(workspace, ofUpdate(update), { rank: rankOf(update) });
  }
}

export function giveUpSlot({ slots, view: { update } }: Claimer): void {
  const workspace = workspaceKeyOf(update);
  slots.giveUp(workspace);
  for (const by of [ofUpdate(update), starting(update)]) slots.withdraw(workspace, by);
}
