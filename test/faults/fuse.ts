/** Where the operator crashes: every call that it makes is named and counted, and one of them triggers the crash. */

/**
 * Relative to one call: a crash before the other side receives it; a crash in the middle of a stream; a crash after it was
 * processed, before its response arrives; no crash, but the response is lost; no crash, but the other side never receives it.
 */
export type Where = "before" | "during" | "after" | "lost" | "cut";

export interface Point {
  /** The call, for example `apply stacks/status base`. */
  readonly call: string;
  /** The occurrence of this call, from 1. */
  readonly nth: number;
  readonly where: Where;
}

export const pointText = ({ call, nth, where }: Point): string => `${where} ${call} #${nth}`;

/** All crash points of the calls. */
export function crashPoints(calls: readonly string[]): Point[] {
  const seen = new Map<string, number>();
  return calls.flatMap((call) => {
    const nth = (seen.get(call) ?? 0) + 1;
    seen.set(call, nth);
    return placesIn(call).map((where) => ({ call, nth, where }));
  });
}

const streams = /^rpc (prepare|watch|outputs) /;

const placesIn = (call: string): readonly Where[] =>
  streams.test(call) ? ["before", "during", "after", "lost"] : ["before", "after", "lost"];

export class Fuse {
  #calls: string[] = [];
  #point: Point | undefined;
  #count = 0;
  #firedAt: number | undefined;

  /** Restarts counting. */
  arm(point?: Point): void {
    this.#calls = [];
    this.#point = point;
    this.#count = 0;
    this.#firedAt = undefined;
  }

  /** The calls since it was armed. */
  get calls(): readonly string[] {
    return this.#calls;
  }

  /** When it was triggered, by `performance.now`; undefined if it was not. */
  get firedAt(): number | undefined {
    return this.#firedAt;
  }

  /** What happens to this call; undefined for all but one. */
  arrive(call: string): Where | undefined {
    this.#calls.push(call);
    if (call !== this.#point?.call || ++this.#count !== this.#point.nth) return undefined;
    this.#firedAt = performance.now();
    return this.#point.where;
  }
}
