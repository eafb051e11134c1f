/**
 * The API server's clock, by which certificates are dated. A wrong local clock must neither replace the CA nor create one
 * that is not valid yet, so an action that depends on age needs both clocks to agree that it is due.
 */
import type { Client, Clock, Logger } from "@pko/kube";

interface ServerClockOptions {
  readonly client: Pick<Client, "serverTime">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** NTP keeps clocks within seconds of each other; certificates are backdated by an hour. */
const toleratedMs = 5 * 60_000;

export class ServerClock {
  readonly #options: ServerClockOptions;
  #read: Promise<Date> | undefined;
  #hasWarned = false;

  constructor(options: ServerClockOptions) {
    this.#options = options;
  }

  local(): Date {
    return new Date(this.#options.clock.now());
  }

  /** Read at the first call since `reset`: a local clock that jumps after that has no effect. */
  async server(): Promise<Date> {
    this.#read ??= this.#readServer();
    try {
      return await this.#read;
    } catch (error) {
      this.reset();
      throw error;
    }
  }

  reset(): void {
    this.#read = undefined;
  }

  /** Whether something is due by both clocks. The API server is queried only if it is due by the local clock. */
  async isDue(test: (now: Date) => boolean): Promise<boolean> {
    return test(this.local()) && test(await this.server());
  }

  async isAgreed(): Promise<boolean> {
    return Math.abs((await this.server()).getTime() - this.local().getTime()) <= toleratedMs;
  }

  async #readServer(): Promise<Date> {
    const { client } = this.#options;
    const server = (await client.serverTime()) ?? this.local();
    this.#compare(server.getTime() - this.local().getTime());
    return server;
  }

  #compare(differenceMs: number): void {
    const isWrong = Math.abs(differenceMs) > toleratedMs;
    if (isWrong && !this.#hasWarned) {
      this.#options.log.warn(
        "The local clock and the API server's clock differ. Until they agree, certificates are dated by the API server's " +
          "clock, and no CA is replaced because of its age. Correct the clock of the operator's node, or that of the API server.",
        { apiServerAheadSeconds: Math.round(differenceMs / 1000) },
      );
    }
    this.#hasWarned = isWrong;
  }
}
