/**
 * What the Receiver controller of the leading replica and the endpoint share: the secrets of Receivers that are ready, and what
 * has arrived for them. Only in memory, while this replica leads.
 */
import { systemClock, type Clock, type Key } from "@pko/kube";

import type { HookResult } from "./results.ts";

export interface Deliveries {
  readonly delivery?: { readonly at: number; readonly repository?: string; readonly stacks?: number };
  readonly rejection?: { readonly at: number; readonly reason: HookResult };
}

/** A Receiver's status is written at most this often because of webhooks. */
export const recordingMs = 60_000;

interface Entry {
  secret?: Buffer;
  /** What the controller may record now. */
  deliveries: Deliveries;
  /** What has arrived since then. The controller must not see it early: each status write causes another reconcile. */
  news: Deliveries;
  wokenAt?: number;
  cancel?: () => void;
}

export class ActiveReceivers {
  readonly #clock: Clock;
  readonly #entries = new Map<Key, Entry>();
  /** Set by the controller. */
  wake: (key: Key) => void = () => undefined;

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  activate(key: Key, secret: Buffer): void {
    this.#entry(key).secret = secret;
  }

  /** Its webhooks are rejected from now on. */
  deactivate(key: Key): void {
    delete this.#entry(key).secret;
  }

  /** The Receiver is deleted. */
  forget(key: Key): void {
    this.#entries.get(key)?.cancel?.();
    this.#entries.delete(key);
  }

  /** This replica no longer leads. */
  clear(): void {
    for (const key of this.#entries.keys()) this.forget(key);
  }

  secretOf(key: Key): Buffer | undefined {
    return this.#entries.get(key)?.secret;
  }

  deliveriesOf(key: Key): Deliveries {
    return this.#entries.get(key)?.deliveries ?? {};
  }

  /** The controller records it in the status: immediately, or when a minute has passed since the last time. */
  record(key: Key, news: Deliveries): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    entry.news = { ...entry.news, ...news };
    if (entry.cancel) return;
    const now = this.#clock.monotonic();
    const pause = Math.max(0, (entry.wokenAt ?? -Infinity) + recordingMs - now);
    entry.cancel = this.#clock.after(pause, () => {
      delete entry.cancel;
      entry.wokenAt = this.#clock.monotonic();
      entry.deliveries = { ...entry.deliveries, ...entry.news };
      entry.news = {};
      this.wake(key);
    });
  }

  #entry(key: Key): Entry {
    const entry = this.#entries.get(key) ?? { deliveries: {}, news: {} };
    this.#entries.set(key, entry);
    return entry;
  }
}
