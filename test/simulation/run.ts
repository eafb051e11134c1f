/** Runs one seed: users and faults, then quiet, in which everything must converge and then stay as it is. */
import type { SeededRandom } from "../../packages/kube/testing/seeded-random.ts";
import { Faults } from "./faults.ts";
import { Users } from "./users.ts";
import { countedImmediate } from "./virtual-time.ts";
import { World } from "./world.ts";

export interface SeedReport {
  readonly seed: number;
  readonly violations: readonly string[];
  readonly faults: number;
  readonly requests: number;
  /** Changes of stacks. */
  readonly writes: number;
  readonly virtualMs: number;
  readonly convergedMs: number;
  readonly story: readonly string[];
  /** Of the story. */
  readonly digest: string;
  readonly log: readonly string[];
}

/** Several retries in a row, with growing pauses. */
const convergenceMs = 4 * 3_600_000;
/** Then all faults end. */
const longestFaultsMs = 8 * 60_000;
const idleMs = 2 * 60_000;
/** Of one replica in `idleMs`. */
const idleRequests = 120;
/** For a write of an operator. */
const maxWaitMs = 10_000;

/** The simulation needs a process for itself. */
export async function runSeed(seed: number): Promise<SeedReport> {
  forbidRealTime();
  const world = new World(seed);
  const faults = new Faults(world);
  const onError = (error: unknown): void => world.invariants.violate(`an error that nothing handles: ${textOf(error)}`);
  for (const event of unhandled) process.on(event, onError);
  const convergedMs = (await reportingErrors(world, () => play(world, faults))) ?? 0;
  await reportingErrors(world, () => world.end());
  for (const event of unhandled) process.off(event, onError);
  return reportOf(world, { faults: faults.count, convergedMs });
}

/** Without this, the number of the seed and its story would be lost. */
async function reportingErrors<T>(world: World, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    world.invariants.violate(`the seed threw: ${textOf(error)}`);
    return undefined;
  }
}

const unhandled = ["uncaughtException", "unhandledRejection"] as const;

const textOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error));

function reportOf(world: World, counts: Pick<SeedReport, "faults" | "convergedMs">): SeedReport {
  const { seed, invariants, backend, time, story, log } = world;
  return {
    ...counts,
    seed,
    violations: invariants.violations,
    requests: invariants.requestCount,
    writes: backend.writes.length,
    virtualMs: time.elapsed,
    story,
    digest: new Bun.CryptoHasher("sha256").update(story.join("\n")).digest("hex"),
    log,
  };
}

/** Code that does not use the clock of its process would make a seed depend on the machine. */
function forbidRealTime(): void {
  const forbidden = (name: string) => (): never => {
    throw new Error(`the simulated operator calls ${name}`);
  };
  Object.assign(globalThis, {
    setTimeout: forbidden("setTimeout"),
    setInterval: forbidden("setInterval"),
    setImmediate: countedImmediate,
  });
  Object.assign(AbortSignal, { timeout: forbidden("AbortSignal.timeout") });
}

/** Returns how long it took to converge. */
async function play(world: World, faults: Faults): Promise<number> {
  const { time, invariants, faults: random, users: userRandom } = world;
  const users = new Users(world);
  const chaosMs = 60_000 + random.next() * (longestFaultsMs - 60_000);
  const plan = [
    ...Array.from({ length: 3 + random.below(8) }, () => momentFor(random, chaosMs, () => faults.inject())),
    ...Array.from({ length: 1 + userRandom.below(8) }, () => momentFor(userRandom, chaosMs, () => users.act())),
  ];
  for (const { at, isAtWrite, act } of plan.toSorted((a, b) => a.at - b.at)) {
    await time.run(Math.max(0, at - time.elapsed));
    const { writeCount } = invariants;
    if (isAtWrite) await time.runUntil(() => invariants.writeCount > writeCount, maxWaitMs);
    act();
  }
  await time.run(Math.max(0, chaosMs - time.elapsed));
  heal(world, users, faults);
  const convergedMs = await converge(world);
  if (invariants.violations.length === 0) await stayIdle(world);
  return convergedMs;
}

/**
 * Half of what happens does so when an operator has just written something and has no response yet: in the middle of a
 * reconcile, much can go wrong. Otherwise, operators are idle most of the time.
 */
function momentFor(random: SeededRandom, withinMs: number, act: () => void) {
  return { at: random.next() * withinMs, isAtWrite: random.next() < 0.5, act };
}

function heal(world: World, users: Users, faults: Faults): void {
  world.tell("no more faults");
  world.isCalm = true;
  faults.endAll();
  users.cleanUp();
  for (const { cluster } of world.places) cluster.resync();
  world.removeStaleLocks();
}

async function converge(world: World): Promise<number> {
  const { time, invariants, places } = world;
  const started = time.elapsed;
  // Every second, so it ends at the first problem.
  function* problems(): Generator<string> {
    for (const place of places) yield* invariants.unconverged(place);
    for (const place of places) yield* invariants.leftovers(place);
    yield* invariants.abandoned();
  }
  const hasProblem = (): boolean => problems().next().done === false;
  while (hasProblem() && invariants.violations.length === 0 && time.elapsed - started < convergenceMs) {
    await time.run(1000);
  }
  // After another violation, it was not given the time to converge.
  if (invariants.violations.length > 0) return time.elapsed - started;
  for (const problem of problems()) invariants.violate(`not converged: ${problem}`);
  if (invariants.violations.length === 0) world.tell("converged");
  return time.elapsed - started;
}

async function stayIdle(world: World): Promise<void> {
  const { time, invariants, places } = world;
  // Workspaces without work are scaled to zero, which is the last write. After the timeout, a time that a wrong clock
  // recorded may be up to the timeout in the future: then they wait for that time, and for the timeout again. Meanwhile, a later
  // one may have come as near, for as long as the clock was wrong. What a watch has lost is found within five minutes.
  await time.run(3 * world.idleTimeoutMs + 120_000 + (world.mayCorrectLate ? longestFaultsMs : 0));
  const before = { requests: invariants.requestCount, writes: invariants.writeCount };
  await time.run(idleMs);
  const requests = invariants.requestCount - before.requests;
  const writes = invariants.writeCount - before.writes;
  const replicas = places.reduce((sum, place) => sum + place.replicas.length, 0);
  world.tell(`idle: ${requests} requests, ${writes} writes`);
  if (writes > 0) invariants.violate(`${writes} writes, although nothing is due: ${invariants.lastWrite}`);
  if (requests > idleRequests * replicas)
    invariants.violate(`${requests} requests in two minutes, although nothing is due`);
  for (const place of places) {
    for (const problem of invariants.unconverged(place)) invariants.violate(`did not stay converged: ${problem}`);
  }
}
