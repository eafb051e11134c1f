/** The sizes of all scenarios. The quick run takes less than five minutes on two cores. */

export interface Sizes {
  /** Lifecycles of a Stack, each measured with the bare CLI. */
  readonly rounds: number;
  /** Branches with a new commit, distributed over one polling interval. */
  readonly branches: number;
  /** Git repositories to poll every minute; 0 skips the scenario, which takes four minutes. */
  readonly repositories: number;
  /** Stacks that the console lists. */
  readonly consoleStacks: number;
  /** Stacks that kubectl pulumi lists. */
  readonly cliStacks: number;
  /** Numbers of Stacks created at once. */
  readonly crowds: readonly number[];
  /** The number of held updates; 0 skips the scenario. */
  readonly held: number;
  /** Numbers of idle Stacks. */
  readonly idle: readonly number[];
  /** Stacks that are created and deleted while the others are idle. */
  readonly worked: number;
  /** The wait before memory is read, and the time in which CPU time and requests are counted. */
  readonly settleMs: number;
  readonly windowMs: number;
  /** Measured restarts of the operator for each number of idle Stacks. */
  readonly restarts: number;
  /** Stacks that one push affects; 0 skips the scenario. */
  readonly pushed: number;
  /** Idle Stacks with a long history. */
  readonly scale: ScaleSize;
}

export interface ScaleSize {
  /** 0 skips the scenario. */
  readonly stacks: number;
  /** Finished Updates of each Stack. */
  readonly updatesEach: number;
  /** How long the idle operator is observed, and the wait before memory is read. */
  readonly windowS: number;
  readonly settleS: number;
  /** Stacks that are changed at the end, as fast as possible. */
  readonly changes: number;
}

/** About a minute. */
export const smallScale: ScaleSize = { stacks: 300, updatesEach: 15, windowS: 10, settleS: 3, changes: 100 };

export const full: Sizes = {
  rounds: 7,
  branches: 6,
  repositories: 10_000,
  consoleStacks: 10_000,
  cliStacks: 5000,
  crowds: [1, 5, 10, 20, 30],
  held: 200,
  idle: [0, 100, 250, 500, 1000],
  worked: 10,
  settleMs: 30_000,
  windowMs: 60_000,
  restarts: 3,
  pushed: 1000,
  scale: { stacks: 10_000, updatesEach: 15, windowS: 600, settleS: 30, changes: 1000 },
};

export const quick: Sizes = {
  rounds: 2,
  branches: 1,
  repositories: 0,
  consoleStacks: 1000,
  cliStacks: 500,
  crowds: [5],
  held: 0,
  idle: [0, 200],
  worked: 2,
  settleMs: 5000,
  windowMs: 10_000,
  restarts: 1,
  pushed: 0,
  scale: { ...smallScale, stacks: 0 },
};
