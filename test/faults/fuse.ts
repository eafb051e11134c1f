/** Where the operator is to die: every call that it makes is named and counted, and one of them sets it off. */

/**
 * Relative to one call: killed before the other side gets it; killed once it is done, its answer unheard; killed in the
 * middle of a stream; not killed, but the answer is lost; not killed, but the other side never gets it.
 */
export type Where = "before" | "during" | "after" | "lost" | "cut";

export interface Point {
  /** The call, such as `apply stacks/status base`. */
  readonly call: string;
  /** Which of those with this name, from 1. */
  readonly nth: number;
  readonly where: Where;
}

export const textOf = ({ call, nth, where }: Point): string => `${where} ${call} #${nth}`;

/** All points of the calls that were made. */
export function pointsOf(calls: readonly string[]): Point[] {
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

  /** From here on calls are counted anew. */
  arm(point?: Point): void {
    this.#calls = [];
    this.#point = point;
    this.#count = 0;
    this.#firedAt = undefined;
  }

  /** Those since it was armed. */
  get calls(): readonly string[] {
    return this.#calls;
  }

  /** When it went off, in milliseconds of `performance.now`; undefined as long as it has not. */
  get firedAt(): number | undefined {
    return this.#firedAt;
  }

  /** What is to become of this call; nothing, for all but one. */
  arrive(call: string): Where | undefined {
    this.#calls.push(call);
    if (call !== this.#point?.call || ++this.#count !== this.#point.nth) return undefined;
    this.#firedAt = performance.now();
    return this.#point.where;
  }
}
