/**
 * Runs lifecycles with a crash in each phase, until every crash point was hit. The outcome of each phase must be the same as
 * in a lifecycle without crashes.
 */
import { seededRandom } from "@pko/testkit";

import { crashPoints, pointText, type Point, type Where } from "./fuse.ts";
import { findDifference, type Failure } from "./judgement.ts";
import { Lifecycle, Stuck, type LifecycleOptions, type PhaseEnd } from "./lifecycle.ts";
import type { CrashMode } from "./operators.ts";
import { phases, stories, storyNames, type Phase, type Story } from "./script.ts";
import type { Stage } from "./stage.ts";

export interface Tally {
  /** The calls of a phase without a crash. */
  readonly calls: number;
  readonly points: number;
  readonly hits: Record<Where, number>;
  /** Points that were not hit in several attempts. */
  readonly missed: string[];
  readonly failures: Failure[];
  /** Requests with the response 403. */
  forbidden: number;
  /** Durations of phases with a crash, in milliseconds. */
  readonly times: number[];
}

export type Report = ReadonlyMap<Phase, Tally>;

export interface CampaignOptions {
  readonly stage: Stage;
  /** All stories if absent. */
  readonly stories?: readonly Story[];
  /** The number of parallel lifecycles. */
  readonly width: number;
  /** What happens to the operator; it is killed by default. */
  readonly crashMode?: CrashMode;
  /** A random sample of this many points in each phase of a story; all points if absent. */
  readonly sample?: Readonly<Partial<Record<Story, number>>>;
  /** Of the sample, and of the order of the points. */
  readonly seed: number;
  /** The outcomes without crashes; determined first if absent. */
  readonly reference?: Ends;
  /** Only points whose text matches, for example `destroy, before apply stacks/status web #2`; all points if absent. */
  readonly only?: RegExp;
  /** When it aborts, no further lifecycle starts. */
  readonly signal?: AbortSignal;
  readonly log?: (text: string) => void;
}

interface Try extends Point {
  readonly attempts: number;
}

/** A phase that always fails would otherwise repeat forever, since the phases after it are never reached. */
const maxFailures = 20;
const maxAttempts = 3;
/** A long lifecycle accumulates Updates. */
const maxRepeats = 3;

export async function runCampaign(options: CampaignOptions): Promise<Report> {
  const { stage, width, sample, stories: names = storyNames, log = () => undefined } = options;
  const reference = options.reference ?? (await runWithoutCrash(stage, names));
  // Some calls are not made every time: a second lifecycle finds more of them.
  const second = sample === undefined ? await runWithoutCrash(stage, names) : reference;
  const report = new Map<Phase, Tally>();
  const queues = new Map<Phase, Try[]>();
  for (const [story, phase] of names.flatMap((name) => stories[name].map((phase) => [name, phase] as const))) {
    const [one, two] = [phaseEnd(reference, phase), phaseEnd(second, phase)];
    const difference = findDifference(one, two);
    if (difference) throw new Error(`${phase} without a crash (${difference.kind}): ${difference.text}`);
    const points = shuffled(union(crashPoints(one.calls), crashPoints(two.calls)), options.seed);
    const matching = points.filter((point) => options.only?.test(`${phase}, ${pointText(point)}`) ?? true);
    const chosen = matching.slice(0, sample?.[story]);
    queues.set(
      phase,
      chosen.map((point) => ({ ...point, attempts: 0 })),
    );
    report.set(phase, newTally(one.calls.length, chosen.length));
  }
  if (![...report.values()].some(({ points }) => points > 0)) throw new Error(noPoint(options.only));
  const campaign = new Campaign({ stage, reference, report, queues, log, crashMode: options.crashMode ?? "kill" });
  await Promise.all(Array.from({ length: width }, () => campaign.work(options.signal)));
  return report;
}

const noPoint = (only?: RegExp): string =>
  `no crash point matches${only ? ` ${only}` : ""}, so nothing was tested: a point reads like "destroy, before apply stacks/status web #2"`;

export const newTally = (calls: number, points: number): Tally => ({
  calls,
  points,
  hits: { before: 0, during: 0, after: 0, lost: 0, cut: 0 },
  missed: [],
  failures: [],
  forbidden: 0,
  times: [],
});

export type Ends = ReadonlyMap<Phase, PhaseEnd>;

export async function runWithoutCrash(
  stage: Stage,
  names: readonly Story[] = storyNames,
  options: LifecycleOptions = {},
): Promise<Ends> {
  const ends = new Map<Phase, PhaseEnd>();
  const run = async (order: readonly Phase[]): Promise<void> => {
    await using lifecycle = await Lifecycle.start(stage, options);
    for (const phase of order) ends.set(phase, await lifecycle.run(phase));
  };
  await Promise.all(names.map((name) => run(stories[name])));
  return ends;
}

export function phaseEnd(ends: Ends, phase: Phase): PhaseEnd {
  const end = ends.get(phase);
  if (!end) throw new Error(`phase ${phase} has no outcome`);
  return end;
}

function union(one: readonly Point[], two: readonly Point[]): Point[] {
  return [...new Map([...one, ...two].map((point) => [pointText(point), point])).values()];
}

function shuffled<T>(items: readonly T[], seed: number): T[] {
  const { next } = seededRandom(seed);
  return items
    .map((item) => ({ item, at: next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

interface CampaignParts {
  readonly stage: Stage;
  readonly crashMode: CrashMode;
  readonly reference: Ends;
  readonly report: Report;
  readonly queues: ReadonlyMap<Phase, Try[]>;
  readonly log: (text: string) => void;
}

class Campaign {
  readonly #parts: CampaignParts;
  #started = 0;

  constructor(parts: CampaignParts) {
    this.#parts = parts;
  }

  async work(signal?: AbortSignal): Promise<void> {
    for (;;) {
      const order = this.#nextStory();
      const plan = this.#nextPlan(order);
      if (plan.size === 0 || signal?.aborted) return;
      await this.#runPlan(order, plan);
    }
  }

  /** The phases of the story with the phase that has the most points left. */
  #nextStory(): readonly Phase[] {
    const left = (order: readonly Phase[]): number => Math.max(...order.map((phase) => this.#queue(phase).length));
    const orders: readonly (readonly Phase[])[] = storyNames.map((name) => stories[name]);
    return orders.reduce((most, order) => (left(order) > left(most) ? order : most));
  }

  /** One remaining point of each phase; none after too many failures. */
  #nextPlan(order: readonly Phase[]): Map<Phase, Try> {
    const plan = new Map<Phase, Try>();
    if (this.#failures() >= maxFailures) return plan;
    for (const phase of order) {
      const next = this.#queue(phase).shift();
      if (next) plan.set(phase, next);
    }
    return plan;
  }

  #failures(): number {
    return [...this.#parts.report.values()].reduce((sum, { failures }) => sum + failures.length, 0);
  }

  #queue(phase: Phase): Try[] {
    return this.#parts.queues.get(phase) ?? [];
  }

  #tally(phase: Phase): Tally {
    return this.#parts.report.get(phase) ?? newTally(0, 0);
  }

  /** Runs to the last phase of the plan, or to the first that fails. */
  async #runPlan(order: readonly Phase[], plan: Map<Phase, Try>): Promise<void> {
    const number = ++this.#started;
    await using lifecycle = await Lifecycle.start(this.#parts.stage, { crashMode: this.#parts.crashMode });
    let hasPassed = await this.#phases(lifecycle, order, plan);
    for (let round = 1; hasPassed && round <= maxRepeats && this.#isRepeatDue(lifecycle); round++) {
      const order: readonly Phase[] =
        lifecycle.lastPhase === "destroy" ? ["prerequisite", "destroy"] : ["destroy", "prerequisite"];
      hasPassed = await this.#phases(lifecycle, order, this.#nextPlan(order));
    }
    const remaining = phases.map((phase) => this.#queue(phase).length);
    this.#parts.log(`lifecycle ${number} finished; points left: ${remaining.join(" ")}`);
  }

  /** Creates and deletes the dependent Stack again in a healthy lifecycle, which is faster than running a new one to that phase. */
  #isRepeatDue({ lastPhase }: Lifecycle): boolean {
    const others = (["new commit", "spec change", "resync"] as const).map((phase) => this.#queue(phase).length);
    const hasDependent = lastPhase === "prerequisite" || lastPhase === "destroy";
    return hasDependent && this.#queue("prerequisite").length > Math.max(...others);
  }

  /** Whether all phases passed. Points that were not reached are queued again. */
  async #phases(lifecycle: Lifecycle, order: readonly Phase[], plan: ReadonlyMap<Phase, Try>): Promise<boolean> {
    const left = new Map(plan);
    const last = order.findLastIndex((phase) => plan.has(phase));
    for (const phase of order.slice(0, last + 1)) {
      const point = left.get(phase);
      left.delete(phase);
      if (await this.#phase(lifecycle, phase, point)) continue;
      for (const [phase, point] of left) this.#queue(phase).push(point);
      return false;
    }
    return true;
  }

  /** Whether the lifecycle can continue. */
  async #phase(lifecycle: Lifecycle, phase: Phase, point: Try | undefined): Promise<boolean> {
    const tally = this.#tally(phase);
    const fail = ({ kind, text }: Failure): boolean => {
      const where = point ? pointText(point) : "without a crash, after crashes in earlier phases";
      const description = `${phase}, ${where}: ${text}`;
      tally.failures.push({ kind, text: description });
      this.#parts.log(`FAILED (${kind}) ${description.slice(0, 2000)}; see ${lifecycle.folder}`);
      return false;
    };
    try {
      const end = await lifecycle.run(phase, point);
      tally.forbidden += end.forbidden.length;
      if (point) this.#count(tally, point, { end, phase });
      const difference = findDifference(phaseEnd(this.#parts.reference, phase), end);
      return difference === undefined || fail(difference);
    } catch (error) {
      if (point) tally.hits[point.where] += 1;
      tally.forbidden += lifecycle.takeForbidden().length;
      return fail(
        error instanceof Stuck ? { kind: "stuck", text: error.message } : { kind: "other", text: String(error) },
      );
    }
  }

  #count(tally: Tally, point: Try, { end, phase }: { readonly end: PhaseEnd; readonly phase: Phase }): void {
    if (end.isFired) {
      tally.hits[point.where] += 1;
      tally.times.push(end.ms);
    } else if (point.attempts + 1 < maxAttempts) {
      this.#queue(phase).push({ ...point, attempts: point.attempts + 1 });
    } else tally.missed.push(pointText(point));
  }
}
