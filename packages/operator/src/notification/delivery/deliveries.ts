/**
 * Messages on their way. A sink may take ten seconds to fail, so no reconcile waits for it: the controller starts a delivery, and
 * its end wakes the Notification. Namespaces take turns, and each has a few deliveries at a time, so a sink that hangs delays only
 * others of its namespace. Only in memory: after a restart, what was not recorded as sent is sent again.
 */
import { namespaceOf, parseKey, type Key, type Logger, type Registry } from "@pko/kube";

import * as messages from "../messages.ts";
import type { Occurrence } from "../occurrences/occurrence.ts";
import type { Payload } from "../payload/payload.ts";
import type { Send, Sent, Target } from "./send.ts";

export interface Delivery {
  readonly target: Target;
  readonly payload: Payload;
  readonly occurrences: readonly Occurrence[];
  /** Of the Notification, for the metric. */
  readonly type: string;
}

export type DeliveryState =
  | { readonly kind: "none" }
  | { readonly kind: "sending" }
  | { readonly kind: "ended"; readonly sent: Sent; readonly occurrences: readonly Occurrence[] };

const none: DeliveryState = { kind: "none" };

interface Job {
  readonly key: Key;
  readonly delivery: Delivery;
  readonly lifetime: AbortController;
  state: DeliveryState;
}

interface DeliveryOptions {
  readonly send: Send;
  readonly log: Logger;
  readonly metrics: Registry;
}

export const maxInNamespace = 2;
const maxTotal = 128;

export class Deliveries {
  readonly #options: DeliveryOptions;
  readonly #count: (type: string, sent: Sent) => void;
  readonly #jobs = new Map<Key, Job>();
  /** By namespace, in the order of their turns. */
  readonly #waiting = new Map<string, Job[]>();
  readonly #running = new Map<string, number>();
  /** Set by the controller. */
  wake: (key: Key) => void = () => undefined;

  constructor(options: DeliveryOptions) {
    this.#options = options;
    const counter = options.metrics.counter({
      name: "notification_deliveries_total",
      help: "Messages of Notifications by type and result: delivered, or why not. A message that was not delivered is sent again.",
      labels: ["type", "result"],
    });
    this.#count = (type, { result }) => counter.increment({ type, result });
  }

  start(key: Key, delivery: Delivery): void {
    if (this.#jobs.has(key)) return;
    const job: Job = { key, delivery, lifetime: new AbortController(), state: { kind: "sending" } };
    this.#jobs.set(key, job);
    const namespace = namespaceOf(key);
    this.#waiting.set(namespace, [...(this.#waiting.get(namespace) ?? []), job]);
    this.#startNext();
  }

  stateOf(key: Key): DeliveryState {
    return this.#jobs.get(key)?.state ?? none;
  }

  /** The result of an ended delivery is recorded. */
  recorded(key: Key): void {
    if (this.stateOf(key).kind === "ended") this.#jobs.delete(key);
  }

  /** The Notification is deleted or suspended. */
  forget(key: Key): void {
    this.#jobs.get(key)?.lifetime.abort();
    this.#jobs.delete(key);
  }

  /** This replica no longer leads. */
  clear(): void {
    for (const key of this.#jobs.keys()) this.forget(key);
    this.#waiting.clear();
  }

  #startNext(): void {
    for (let job = this.#takeNext(); job; job = this.#takeNext()) void this.#run(job);
  }

  /** Of the first namespace that has not reached its limit. */
  #takeNext(): Job | undefined {
    const total = [...this.#running.values()].reduce((sum, count) => sum + count, 0);
    if (total >= maxTotal) return undefined;
    for (const [namespace, [next, ...others]] of this.#waiting) {
      if ((this.#running.get(namespace) ?? 0) >= maxInNamespace) continue;
      this.#waiting.delete(namespace);
      if (others.length > 0) this.#waiting.set(namespace, others);
      if (next && !next.lifetime.signal.aborted) return next;
    }
    return undefined;
  }

  async #run(job: Job): Promise<void> {
    const { key, delivery, lifetime } = job;
    const namespace = namespaceOf(key);
    this.#running.set(namespace, (this.#running.get(namespace) ?? 0) + 1);
    const sent = await this.#send(job);
    const left = (this.#running.get(namespace) ?? 1) - 1;
    if (left > 0) this.#running.set(namespace, left);
    else this.#running.delete(namespace);
    if (sent && !lifetime.signal.aborted) {
      this.#count(delivery.type, sent);
      job.state = { kind: "ended", sent, occurrences: delivery.occurrences };
      this.wake(key);
    }
    this.#startNext();
  }

  /** Undefined if nobody waits for the result. */
  async #send({ key, delivery, lifetime }: Job): Promise<Sent | undefined> {
    const { send, log } = this.#options;
    const { target, payload } = delivery;
    try {
      return await send(target, payload, lifetime.signal);
    } catch (error) {
      if (lifetime.signal.aborted) return undefined;
      log.error("a notification could not be sent", { ...parseKey(key), error });
      return { result: "unreachable", message: messages.notSent(target.url.host) };
    }
  }
}
