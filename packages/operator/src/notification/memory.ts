/** What the next pass needs to know about failed deliveries. Pure. */
import type { Moment } from "@pko/kube";

import type { NotificationPlan } from "./steps.ts";
import { basisOf, type Memory, type NotificationView, type Retry } from "./view.ts";

export function remember(
  view: NotificationView,
  { outcome }: NotificationPlan,
  { now, monotonic, memory }: Moment<Memory>,
): Memory | undefined {
  const { news, state } = outcome;
  if (news.kind === "failed") {
    const { cause, retryAt } = news;
    const failures = (view.retry?.failures ?? 0) + 1;
    return { failures, cause, at: monotonic + retryAt - now, basis: basisOf(view) };
  }
  const isOver = news.kind === "delivered" || news.kind === "started" || state.kind === "suspended";
  return view.retry && !isOver ? memory : undefined;
}

/** None if the target may have been corrected since. */
export function retryIn(
  { now, monotonic, memory }: Pick<Moment<Memory>, "now" | "monotonic" | "memory">,
  basis: string,
): Retry | undefined {
  if (memory?.basis !== basis) return undefined;
  const { failures, cause, at } = memory;
  return { failures, cause, at: now + at - monotonic };
}
