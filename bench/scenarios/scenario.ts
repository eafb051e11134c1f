/** A scenario uses only API objects, and returns its results. */
import type { Bed } from "../bed/bed.ts";
import type { Operator } from "../bed/operator.ts";
import type { Findings } from "../report/figures.ts";
import type { Options } from "../options.ts";
import type { Sizes } from "./sizes.ts";

export interface StandaloneContext {
  readonly sizes: Sizes;
  /** Shows the current step to the user. */
  readonly report: (text: string) => void;
}

export interface Context extends StandaloneContext {
  readonly bed: Bed;
  readonly operator: Operator;
  readonly options: Options;
}

interface Named {
  /** The name in ONLY. */
  readonly name: string;
  readonly title: string;
}

export interface Scenario extends Named {
  run(context: Context): Promise<Findings>;
}

/** Needs no cluster. */
export interface StandaloneScenario extends Named {
  runStandalone(context: StandaloneContext): Promise<Findings>;
}
