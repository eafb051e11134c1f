/** When a Stack is reconciled again although nothing reports a change: less often the longer it has been stalled. */
import type { StackReason } from "@pko/api";

import { pauseMs, type PauseLimits } from "../../shared/pauses.ts";
import type { Outcome } from "../outcome.ts";
import type { Obstacle, StackView } from "../view.ts";

type StalledReason = StackReason<"Stalled">;

/** Not all Secrets and ConfigMaps are watched. */
const recheckPauses: PauseLimits = { least: 15_000, most: 300_000 };

export function recheckAt(view: StackView, reason: StalledReason, limits: PauseLimits = recheckPauses): number {
  return view.now + pauseMs({ sinceMs: obstacleMs(view, reason), id: view.stack.metadata.uid ?? "" }, limits);
}

/** How long it has been stalled for this reason. */
export const obstacleMs = ({ now, obstacle }: StackView, reason: StalledReason): number =>
  obstacle?.reason === reason ? now - obstacle.since : 0;

/** For the next pass. The condition does not show it: its time stays the same when only its reason changes. */
export function rememberedObstacle({ now, obstacle }: StackView, outcome: Outcome): Obstacle | undefined {
  if (outcome.kind === "unchanged") return obstacle;
  if (outcome.kind !== "stalled") return undefined;
  const { reason } = outcome;
  return obstacle?.reason === reason ? obstacle : { reason, since: now };
}
