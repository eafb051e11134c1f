/** Which hosts have listed a repository quickly for a namespace. Polls of any other host may hold their slots for long. */
import type { Clock } from "@pko/kube";

/** A poll that takes longer is slow. If nothing had indicated that, it is ended, and repeated as a suspect. */
export const quickMs = 5000;
/** Beyond it, those that responded least recently are forgotten: a tenant can have any number of hosts. */
const maxHosts = 10_000;

export class QuickHosts {
  readonly #clock: Clock;
  /** When they last did. */
  readonly #listedAt = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  has(host: string, namespace: string): boolean {
    return this.#listedAt.has(`${namespace} ${host}`);
  }

  add(host: string, namespaces: Iterable<string>): void {
    for (const namespace of namespaces) {
      const id = `${namespace} ${host}`;
      this.#listedAt.delete(id);
      this.#listedAt.set(id, this.#clock.monotonic());
    }
    for (const oldest of this.#listedAt.keys()) {
      if (this.#listedAt.size <= maxHosts) return;
      this.#listedAt.delete(oldest);
    }
  }

  /** A poll that started then was slow. If the host has responded quickly in the meantime, only that repository is slow. */
  recordSlow(host: string, namespaces: Iterable<string>, startedAt: number): void {
    for (const namespace of namespaces) {
      const id = `${namespace} ${host}`;
      if ((this.#listedAt.get(id) ?? -Infinity) < startedAt) this.#listedAt.delete(id);
    }
  }

  clear(): void {
    this.#listedAt.clear();
  }
}
