import { systemClock, type Clock } from "@pko/kube";

/** The system clock, moved forward by a test. */
export class JumpingClock implements Clock {
  #ahead = 0;
  readonly #timers = new Set<{ readonly at: number; readonly callback: () => void; cancel: () => void }>();

  now(): number {
    return systemClock.now() + this.#ahead;
  }

  monotonic(): number {
    return systemClock.monotonic() + this.#ahead;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.monotonic() + ms, callback, cancel: (): void => undefined };
    this.#timers.add(timer);
    this.#arm(timer);
    return () => {
      this.#timers.delete(timer);
      timer.cancel();
    };
  }

  jump(ms: number): void {
    this.#ahead += ms;
    for (const timer of this.#timers) this.#arm(timer);
  }

  #arm(timer: { readonly at: number; readonly callback: () => void; cancel: () => void }): void {
    timer.cancel();
    timer.cancel = systemClock.after(Math.max(0, timer.at - this.monotonic()), () => {
      this.#timers.delete(timer);
      timer.callback();
    });
  }
}
