/** The time that the page shows: one clock, so that all relative times agree. */
import { signal } from "@preact/signals";

export const now = signal(Date.now());

const tickMs = 1000;

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === "visible") now.value = Date.now();
  }, tickMs);
}
