/** When and how the stream is opened again. Pure. */
import { limits, type Subscription } from "../../shared/contract.ts";

const firstDelayMs = 500;
const maxDelayMs = 15_000;

/** `attempt` counts failures in a row, from 1. */
export const retryDelay = (attempt: number): number => Math.min(maxDelayMs, firstDelayMs * 2 ** (attempt - 1));

/** After this time without even a heartbeat the connection is dead: the machine slept, or a proxy dropped it. */
export const silenceMs = limits.heartbeatSeconds * 1000 * 2.5;

export const isSilent = (lastHeard: number, now: number): boolean => now - lastHeard > silenceMs;

/** Each watch continues where it was; what has not been listed completely is listed again. */
export function resumed(subscriptions: readonly Subscription[], versions: ReadonlyMap<string, string>): Subscription[] {
  return subscriptions.map((subscription) => {
    const resourceVersion = versions.get(subscription.id);
    return subscription.kind === "watch" && resourceVersion !== undefined
      ? { ...subscription, resourceVersion }
      : subscription;
  });
}
