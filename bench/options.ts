/** The options of the benchmark, from environment variables: `make bench QUICK=1`. */
import { UserError } from "@pko/cluster";

import { full, quick, smallScale, type Sizes } from "./scenarios/sizes.ts";
import { Variables, type Environment } from "./variables.ts";

export interface Options {
  readonly sizes: Sizes;
  readonly isQuick: boolean;
  readonly namespace: string;
  /** `namespace/name` of the operator's Deployment, if there are several. */
  readonly operator?: string;
  /** Names of scenarios; all if empty. */
  readonly only: readonly string[];
  /** Whether idle Stacks keep their Workspaces, as by default; otherwise the Workspaces are deleted. */
  readonly retain: boolean;
  /** Additional fields of the Workspaces of idle Stacks, as JSON. */
  readonly workspace?: Readonly<Record<string, unknown>>;
  readonly gitUrl?: string;
  /** The manifest that installed the operator. */
  readonly manifest?: string;
  /** A manifest or chart of another operator, which takes turns with this one. */
  readonly against?: string;
  /** How often each of them is measured. */
  readonly turns: number;
  /** Reports of other runs to compare with. */
  readonly compare: readonly string[];
  readonly folder?: string;
}

/** Throws an error with everything that is wrong: with a number that is not one, nothing would be measured. */
export function parseOptions(env: Environment): Options {
  const variables = new Variables(env);
  const options = readOptions(variables);
  if (variables.problems.length > 0) throw new UserError(variables.problems);
  return options;
}

function readOptions(variables: Variables): Options {
  const isQuick = variables.text("QUICK") !== undefined && variables.text("QUICK") !== "0";
  const given = {
    operator: variables.text("OPERATOR"),
    gitUrl: variables.text("GIT_URL"),
    manifest: variables.text("MANIFEST"),
    folder: variables.text("OUT"),
    against: variables.text("AGAINST"),
    workspace: variables.object("WORKSPACE", '{"serviceAccountName":"default"}'),
  };
  return {
    sizes: withOverrides(isQuick ? quick : full, variables),
    isQuick,
    namespace: variables.text("BENCH_NAMESPACE") ?? "pulumi-bench",
    only: variables.list("ONLY"),
    compare: variables.list("COMPARE"),
    retain: variables.text("RETAIN") !== undefined,
    turns: variables.number({ name: "TURNS", least: 1 }) ?? (isQuick ? 1 : 2),
    ...present(given),
  };
}

type Present<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

const present = <T extends object>(values: T): Present<T> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Present<T>;

/**
 * ROUNDS, CROWDS, IDLE, HELD, SMALL, STACKS, UPDATES and WINDOW override the sizes. A scenario is left out with ONLY,
 * not with a size of 0.
 */
function withOverrides(sizes: Sizes, variables: Variables): Sizes {
  const scale = variables.text("SMALL") === undefined ? sizes.scale : smallScale;
  const stacks = variables.number({ name: "STACKS", least: 1 });
  const windowS = variables.number({ name: "WINDOW", least: 1 });
  return {
    ...sizes,
    rounds: variables.number({ name: "ROUNDS", least: 1 }) ?? sizes.rounds,
    crowds: variables.numbers({ name: "CROWDS", least: 1 }) ?? sizes.crowds,
    idle: variables.numbers({ name: "IDLE", least: 0 }) ?? sizes.idle,
    held: variables.number({ name: "HELD", least: 1 }) ?? sizes.held,
    pushed: stacks ?? sizes.pushed,
    windowMs: windowS === undefined ? sizes.windowMs : windowS * 1000,
    scale: {
      ...scale,
      stacks: stacks ?? scale.stacks,
      updatesEach: variables.number({ name: "UPDATES", least: 0 }) ?? scale.updatesEach,
      windowS: windowS ?? scale.windowS,
    },
  };
}
