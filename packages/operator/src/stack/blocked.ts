/** What a Stack comes to where somebody else's object has a name that it needs. Pure. */
import type { Occupied } from "@pko/kube";
import { stackKind } from "@pko/api";

import { conflictMessage, conflictPauseMs, isForeign, ownershipConflict } from "../ownership.ts";
import type { Outcome } from "./outcome.ts";
import type { Step } from "./plan.ts";
import type { StackView } from "./view.ts";

interface Blocked {
  readonly outcome: Outcome;
  readonly lookAt: number;
}

export function blocked(view: StackView, occupied: Occupied, before = ""): Blocked {
  const { stack, now } = view;
  const text = conflictMessage([occupied], { kind: stackKind.kind, name: stack.metadata.name ?? "" });
  const message = `${before}${text}`;
  return {
    outcome: isForeign([occupied])
      ? { kind: "stalled", reason: ownershipConflict, message }
      : { kind: "processing", message, waitingFor: "the garbage collector" },
    lookAt: now + conflictPauseMs([occupied], conflictMs(view)),
  };
}

/** How long somebody else's object has been in the way. */
export const conflictMs = ({ now, conflictSince = now }: Pick<StackView, "now" | "conflictSince">): number =>
  now - conflictSince;

/** The step as it was made, and what it comes to: the end of an update is recorded though its outputs are not written. */
export function concludeBlocked(view: StackView, step: Step, occupied: Occupied): Blocked & { readonly step: Step } {
  if (step.kind === "note") {
    const { noted } = step;
    const before = `The update ${noted.update.name} succeeded, but its outputs were not written. `;
    const lastUpdate = { ...noted.lastUpdate, outputsPending: true };
    return { ...blocked(view, occupied, before), step: { ...step, noted: { ...noted, lastUpdate } } };
  }
  const before =
    step.kind === "writeOutputs" ? `The update ${step.updateName} succeeded, but its outputs were not written. ` : "";
  return { ...blocked(view, occupied, before), step: { kind: "none" } };
}
