/** A scenario uses API objects alone, and tells what it found. */
import type { Bed } from "../bed/bed.ts";
import type { Operator } from "../bed/operator.ts";
import type { Findings } from "../report/figures.ts";
import type { Options } from "../options.ts";
import type { Sizes } from "./sizes.ts";

export interface Context {
  readonly bed: Bed;
  readonly operator: Operator;
  readonly options: Options;
  readonly sizes: Sizes;
  /** What is being done, for who watches. */
  readonly say: (text: string) => void;
}

export interface Scenario {
  /** By which one scenario alone can be asked for. */
  readonly name: string;
  readonly title: string;
  run(context: Context): Promise<Findings>;
}
