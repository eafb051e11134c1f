/** Changes inputs at random, keeps those that reach new code, and reports those for which a property does not hold. */
import { seededRandom, type SeededRandom } from "../../../packages/kube/testing/seeded-random.ts";

import { Coverage, knownWords } from "./coverage.ts";
import { pickFrom } from "./material.ts";
import { minimized } from "./minimize.ts";
import { mutated } from "./mutate.ts";
import { problemOf, problemWith } from "./problem.ts";
import { defaultMaxBytes, type Target } from "./target.ts";

export interface FuzzOptions {
  readonly seed: number;
  /** Besides the seeds of the target. */
  readonly inputs: readonly Uint8Array[];
  readonly shouldStop: (rounds: number) => boolean;
  /** Called before each execution, which may never end. */
  readonly onInput: (input: Uint8Array) => void;
}

export interface Fuzzed {
  readonly rounds: number;
  readonly branches: number;
  /** Minimized inputs, by the property that does not hold. */
  readonly findings: ReadonlyMap<string, Uint8Array>;
  /** Inputs that together reach every branch that was reached, the small ones first. */
  readonly reaching: readonly Uint8Array[];
}

/** More are probably the same. */
const maxFindings = 5;

export async function fuzz(target: Target, options: FuzzOptions): Promise<Fuzzed> {
  const random = seededRandom(options.seed);
  const coverage = new Coverage();
  const words = [...(target.words ?? []), ...knownWords()];
  const reaching: Uint8Array[] = [];
  const findings = new Map<string, Uint8Array>();

  const execute = async (input: Uint8Array): Promise<void> => {
    options.onInput(input);
    let problem: string | undefined;
    const reached = await coverage.measure(async () => {
      problem = await problemWith(target, input);
    });
    if (reached > 0 && input.length > 0) {
      if (input.length <= (target.maxBytes ?? defaultMaxBytes)) reaching.push(input);
      problem ??= await problemOf(() => target.compare?.(input));
    }
    if (problem !== undefined && !findings.has(problem)) findings.set(problem, input);
  };

  for (const input of [...target.seeds.map((seed) => Buffer.from(seed as string)), ...options.inputs])
    await execute(input);
  let rounds = 0;
  for (; !options.shouldStop(rounds) && findings.size < maxFindings; rounds++) {
    const input = chosen(reaching, random);
    await execute(mutated(input, target, { random, inputs: reaching, words }));
  }
  const attempted = { ...target, check: (input: Uint8Array) => (options.onInput(input), target.check(input)) };
  for (const [problem, input] of findings) findings.set(problem, await minimized(attempted, input, problem));
  return { rounds, branches: coverage.branches, findings, reaching: await reduced(target, reaching) };
}

async function reduced(target: Target, inputs: readonly Uint8Array[]): Promise<Uint8Array[]> {
  const coverage = new Coverage({ countsOnce: true });
  const kept: Uint8Array[] = [];
  for (const input of inputs.toSorted((a, b) => a.length - b.length)) {
    const reached = await coverage.measure(async () => void (await problemOf(() => target.check(input))));
    if (reached > 0) kept.push(input);
  }
  return kept;
}

/** The newest ones more often: there may be more new code where they lead. */
function chosen(inputs: readonly Uint8Array[], random: SeededRandom): Uint8Array {
  return pickFrom(random.next() < 0.5 ? inputs.slice(-16) : inputs, random);
}
