/** The options of the benchmark, from environment variables: `make bench QUICK=1`. */
import { full, quick, smallScale, type Sizes } from "./scenarios/sizes.ts";

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

export function parseOptions(env: Readonly<Record<string, string | undefined>>): Options {
  const given = (name: string): string | undefined => env[name] || undefined;
  const list = (name: string): string[] => (given(name) ?? "").split(",").filter((item) => item !== "");
  const isQuick = given("QUICK") !== undefined && env["QUICK"] !== "0";
  const [operator, gitUrl, manifest, folder] = [given("OPERATOR"), given("GIT_URL"), given("MANIFEST"), given("OUT")];
  const [workspace, against] = [given("WORKSPACE"), given("AGAINST")];
  return {
    sizes: withOverrides(isQuick ? quick : full, env),
    isQuick,
    namespace: given("BENCH_NAMESPACE") ?? "pulumi-bench",
    only: list("ONLY"),
    compare: list("COMPARE"),
    retain: given("RETAIN") !== undefined,
    ...(workspace !== undefined && { workspace: JSON.parse(workspace) as Record<string, unknown> }),
    turns: Number(given("TURNS") ?? (isQuick ? 1 : 2)),
    ...(against !== undefined && { against }),
    ...(operator !== undefined && { operator }),
    ...(gitUrl !== undefined && { gitUrl }),
    ...(manifest !== undefined && { manifest }),
    ...(folder !== undefined && { folder }),
  };
}

/** ROUNDS, CROWDS, IDLE, HELD, SMALL, STACKS, UPDATES and WINDOW override the sizes. */
function withOverrides(sizes: Sizes, env: Readonly<Record<string, string | undefined>>): Sizes {
  const numbers = (name: string): number[] | undefined => env[name]?.split(",").map(Number);
  const number = (name: string, otherwise: number): number => numbers(name)?.[0] ?? otherwise;
  const scale = env["SMALL"] ? smallScale : sizes.scale;
  return {
    ...sizes,
    rounds: number("ROUNDS", sizes.rounds),
    crowds: numbers("CROWDS") ?? sizes.crowds,
    idle: numbers("IDLE") ?? sizes.idle,
    held: number("HELD", sizes.held),
    pushed: number("STACKS", sizes.pushed),
    windowMs: number("WINDOW", sizes.windowMs / 1000) * 1000,
    scale: {
      ...scale,
      stacks: number("STACKS", scale.stacks),
      updatesEach: number("UPDATES", scale.updatesEach),
      windowS: number("WINDOW", scale.windowS),
    },
  };
}
