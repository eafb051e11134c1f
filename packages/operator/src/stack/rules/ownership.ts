/** Rules about writes that the API server rejected, and names that are taken by another owner's object. */
import { stackKind, type StackReason } from "@pko/api";
import type { Occupied } from "@pko/kube";

import { conflictMessage, conflictPauseMs, isForeign, ownershipConflict } from "../../shared/objects/ownership.ts";
import type { Rejection } from "../../shared/objects/rejections.ts";
import * as messages from "../messages.ts";
import { processing, stalled } from "../outcome.ts";
import { wait, type StackPlan } from "../steps.ts";
import type { StackView } from "../view.ts";
import { obstacleMs, recheckAt } from "./recheck.ts";

/** The reason may disappear without an event: a webhook, a quota, a role. */
const rejectedPauses = { least: 60_000, most: 600_000 } as const;

export function writeRejected(view: StackView): StackPlan | undefined {
  const { rejection } = view;
  if (!rejection) return undefined;
  const reason = rejectionReasons[rejection.kind];
  return wait(stalled(reason, messages.rejection(rejection)), recheckAt(view, reason, rejectedPauses));
}

const rejectionReasons: Readonly<Record<Rejection["kind"], StackReason<"Stalled">>> = {
  namespaceTerminating: "NamespaceTerminating",
  invalid: "SpecInvalid",
  denied: "WorkspaceFailed",
};

export function nameOccupied(view: StackView): StackPlan | undefined {
  return view.occupied && blockedBy(view, view.occupied);
}

/** Until the other object is deleted. `describe` adds what could not be done. */
export function blockedBy(
  view: StackView,
  occupied: Occupied,
  describe = (conflict: string): string => conflict,
): StackPlan {
  const { stack, now } = view;
  const claimant = { kind: stackKind.kind, name: stack.metadata.name ?? "" };
  const message = describe(conflictMessage([occupied], claimant));
  const outcome = isForeign([occupied])
    ? stalled(ownershipConflict, message)
    : processing(message, messages.garbageCollector);
  return wait(outcome, now + conflictPauseMs([occupied], obstacleMs(view, ownershipConflict)));
}

/** Only another run can report the outputs again. Secrets are not watched, so the name is checked repeatedly. */
export function lostOutputs(view: StackView, updateName: string): StackPlan {
  const { outputs, now } = view;
  const { message: why, occupant } =
    outputs.kind === "lost" ? outputs : { message: messages.updateDeleted(updateName), occupant: undefined };
  const message = messages.outputsLost(updateName, { why, isBlocked: occupant !== undefined });
  if (!occupant) return wait(stalled("OutputsLost", message));
  const pauseMs = conflictPauseMs([{ kind: "foreign", occupant }], obstacleMs(view, ownershipConflict));
  return wait(stalled(ownershipConflict, message), now + pauseMs);
}
