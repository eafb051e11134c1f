/**
 * Measures how long the steps of a command take. The engine's times have whole seconds, and the agent reads events in
 * batches, or all at once after a restart. So the time between two reads counts as far as it agrees with the engine's times.
 */
import type { RunEvent } from "@pko/records";
import type { EngineEvent } from "../pulumi/engine-events.ts";

interface Start {
  readonly seconds: number;
  readonly readAt: number;
}

export class StepTimes {
  readonly #started = new Map<string, Start>();

  /** The event with the duration of its step, if it ends one that took time. `readAt` is in milliseconds. */
  add({ event, seconds }: Pick<EngineEvent, "event" | "seconds">, readAt: number): RunEvent | undefined {
    if (event?.kind !== "resource") return event;
    const key = JSON.stringify([event.op, event.urn]);
    const start = this.#started.get(key);
    if (event.phase === "started") {
      this.#started.set(key, { seconds, readAt });
      return event;
    }
    this.#started.delete(key);
    return start ? { ...event, durationMs: duration(start, { seconds, readAt }) } : event;
  }
}

function duration(start: Start, end: Start): number {
  const seconds = Math.max(0, end.seconds - start.seconds);
  const [shortest, longest] = [Math.max(0, seconds - 1) * 1000, (seconds + 1) * 1000];
  return Math.round(Math.min(longest, Math.max(shortest, end.readAt - start.readAt)));
}
