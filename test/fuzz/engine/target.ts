/** What is fuzzed: code that reads bytes which others wrote. */

export interface Target {
  readonly name: string;
  /** Decides how inputs are changed. */
  readonly form: "bytes" | "text" | "json";
  /** Valid inputs to start from. */
  readonly seeds: readonly (string | Uint8Array)[];
  /** Words that inputs may need, besides the literals of the source code. */
  readonly words?: readonly string[];
  /** Larger inputs are tried, but not changed further. */
  readonly maxBytes?: number;
  /** Of an input that repeats a part of itself, to find what takes more than linear time or memory; 128 KiB by default. */
  readonly maxPumpedBytes?: number;
  /** How many inputs `make test` tries. */
  readonly rounds: number;
  /** Makes lengths and checksums right again, without which every change would be rejected for the same reason. */
  readonly repair?: (input: Uint8Array) => Uint8Array;
  /** Throws if a property does not hold. */
  readonly check: (input: Uint8Array) => void | Promise<void>;
  /** Compares with another implementation, which takes longer: only for inputs that reach new code. */
  readonly compare?: (input: Uint8Array) => void | Promise<void>;
}

export const defaultMaxBytes = 2048;

/** A property that does not hold. */
export class Violation extends Error {
  override readonly name = "Violation";
}

export function hold(condition: boolean, property: string): asserts condition {
  if (!condition) throw new Violation(property);
}

export const textOf = (input: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(input);

/** Undefined if the input is not JSON. */
export function jsonOf(input: Uint8Array): unknown {
  try {
    return JSON.parse(textOf(input));
  } catch {
    return undefined;
  }
}

/** Part of inputs, and never of a message. */
export const secret = "hunter2-Tr0ub4dor";
