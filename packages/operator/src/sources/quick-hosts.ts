/** Which hosts have listed a repository quickly for a namespace. Polls of any other host may hold their slots for long. */
import type { Clock } from "@pko/kube";

/** A poll that takes longer is slow. If nothing had indicated that, it is ended, and repeated as a suspect. */
export const quickMs = 5000;
/** Of a namespace. Beyond it, those that responded least recently are forgotten: a tenant can have any number of hosts. */
const maxHosts = 1000;
/** After the last quick response for a namespace. It may be deleted. */
const keptMs = 2 * 60 * 60_000;

interface HostsOfNamespace {
  /** When they last listed a repository quickly. The one that did so most recently is the last. */
  readonly listedAt: Map<string, number>;
  readonly addedAt: number;
}

export class QuickHosts {
  readonly #clock: Clock;
  /** In the order of `addedAt`, for `#forgetOld`. */
  readonly #namespaces = new Map<string, HostsOfNamespace>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(host: string, namespace: string): boolean {
    return this.#namespaces.get(namespace)?.listedAt.has(host) === true;
  }

  add(host: string, namespaces: Iterable<string>): void {
    const now = this.#clock.monotonic();
    for (const namespace of namespaces) {
      const { listedAt } = this.#namespaces.get(namespace) ?? { listedAt: new Map<string, number>() };
      this.#namespaces.delete(namespace);
      this.#namespaces.set(namespace, { listedAt, addedAt: now });
      listedAt.delete(host);
      listedAt.set(host, now);
      const [oldest] = listedAt.keys();
      if (listedAt.size > maxHosts && oldest !== undefined) listedAt.delete(oldest);
    }
    this.#forgetOld(now);
  }

  #forgetOld(now: number): void {
    for (const [namespace, { addedAt }] of this.#namespaces) {
      if (now - addedAt <= keptMs) return;
      this.#namespaces.delete(namespace);
    }
  }

  /** A poll that started then was slow. If the host has responded quickly in the meantime, only that repository is slow. */
  recordSlow(host: string, namespaces: Iterable<string>, startedAt: number): void {
    for (const namespace of namespaces) {
      const listedAt = this.#namespaces.get(namespace)?.listedAt;
      if ((listedAt?.get(host) ?? Infinity) < startedAt) listedAt?.delete(host);
      if (listedAt?.size === 0) this.#namespaces.delete(namespace);
    }
  }

  clear(): void {
    this.#namespaces.clear();
  }
}
