/** How much of everything. The quick run stays below five minutes on two cores. */

export interface Sizes {
  /** Lives of a Stack, each measured beside the bare CLI. */
  readonly rounds: number;
  /** Branches that are pushed to, spread over one interval of polling. */
  readonly branches: number;
  /** Stacks created at once, one number after the other. */
  readonly crowds: readonly number[];
  /** Updates that are held at once; none when 0. */
  readonly held: number;
  /** Idle Stacks, one number after the other. */
  readonly idle: readonly number[];
  /** Before memory is read, and while processor time and requests are counted. */
  readonly settleMs: number;
  readonly windowMs: number;
  /** Restarts of the operator that are timed at each number of idle Stacks. */
  readonly restarts: number;
}

export const full: Sizes = {
  rounds: 7,
  branches: 6,
  crowds: [1, 5, 10, 20, 30],
  held: 200,
  idle: [0, 100, 250, 500, 1000],
  settleMs: 30_000,
  windowMs: 60_000,
  restarts: 3,
};

export const quick: Sizes = {
  rounds: 2,
  branches: 1,
  crowds: [5],
  held: 0,
  idle: [0, 200],
  settleMs: 5000,
  windowMs: 10_000,
  restarts: 1,
};
