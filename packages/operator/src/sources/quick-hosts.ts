/** Which hosts have listed a repository quickly for a namespace. Polls of any other host may hold their slots for long. */
import type { Clock } from "@pko/kube";

/** A poll that takes longer is slow. If nothing had indicated that, it is ended, and repeated as a suspect. */
export const quickMs = 5000;
/** Of a namespace. Beyond it, those that responded least recently are forgotten: a tenant can have any number of hosts. */
const maxHosts = 1000;

export class QuickHosts {
  readonly #clock: Clock;
  /** When they last did, by namespace and host. */
  readonly #listedAt = new Map<string, Map<string, number>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(host: string, namespace: string): boolean {
    return this.#listedAt.get(namespace)?.has(host) === true;
  }

  add(host: string, namespaces: Iterable<string>): void {
    for (const namespace of namespaces) {
      const hosts = this.#listedAt.get(namespace) ?? new Map<string, number>();
      this.#listedAt.set(namespace, hosts);
      hosts.delete(host);
      hosts.set(host, this.#clock.monotonic());
      const [oldest] = hosts.keys();
      if (hosts.size > maxHosts && oldest !== undefined) hosts.delete(oldest);
    }
  }

  /** A poll that started then was slow. If the host has responded quickly in the meantime, only that repository is slow. */
  recordSlow(host: string, namespaces: Iterable<string>, startedAt: number): void {
    for (const namespace of namespaces) {
      const hosts = this.#listedAt.get(namespace);
      if ((hosts?.get(host) ?? -Infinity) < startedAt) hosts?.delete(host);
    }
  }

  clear(): void {
    this.#listedAt.clear();
  }
}
