/**
 * Lives with a crash in each phase, until every point has had its turn. What a phase comes to must be what it comes to in a
 * life without crashes.
 */
import { pointsOf, textOf, type Point, type Where } from "./fuse.ts";
import { Life, phases, Wedged, type Outcome, type Phase, type PhaseEnd } from "./life.ts";
import type { Stage } from "./stage.ts";

export interface Tally {
  /** The calls of an undisturbed phase. */
  readonly calls: number;
  readonly points: number;
  readonly hits: Record<Where, number>;
  /** Points that no life came by, though several tried. */
  readonly missed: string[];
  readonly failures: string[];
  /** Of disturbed phases, in milliseconds. */
  readonly times: number[];
}

export type Report = ReadonlyMap<Phase, Tally>;

export interface CampaignOptions {
  readonly stage: Stage;
  /** Lives at once. */
  readonly width: number;
  /** Only so many points of each phase, others every time; all when absent. */
  readonly sample?: number;
  readonly only?: readonly Phase[];
  readonly say?: (text: string) => void;
}

interface Try extends Point {
  readonly attempts: number;
}

const mostAttempts = 3;

export async function runCampaign(options: CampaignOptions): Promise<Report> {
  const { stage, width, sample, say = () => undefined } = options;
  const reference = await undisturbed(stage);
  // Some calls are made now and then only: a second look finds more of them.
  const second = sample === undefined ? await undisturbed(stage) : reference;
  const report = new Map<Phase, Tally>();
  const queues = new Map<Phase, Try[]>();
  for (const phase of phases) {
    const [one, two] = [endOf(reference, phase), endOf(second, phase)];
    const difference = differenceOf(one, two);
    if (difference !== undefined) throw new Error(`two undisturbed lives differ in ${phase}: ${difference}`);
    const points = shuffled(union(pointsOf(one.calls), pointsOf(two.calls)));
    const isAsked = options.only?.includes(phase) ?? true;
    const chosen = isAsked ? points.slice(0, sample ?? points.length) : [];
    queues.set(
      phase,
      chosen.map((point) => ({ ...point, attempts: 0 })),
    );
    report.set(phase, newTally(one.calls.length, chosen.length));
  }
  const campaign = new Campaign({ stage, reference, report, queues, say });
  await Promise.all(Array.from({ length: width }, () => campaign.work()));
  return report;
}

const newTally = (calls: number, points: number): Tally => ({
  calls,
  points,
  hits: { before: 0, during: 0, after: 0, lost: 0 },
  missed: [],
  failures: [],
  times: [],
});

type Ends = ReadonlyMap<Phase, PhaseEnd>;

async function undisturbed(stage: Stage): Promise<Ends> {
  await using life = await Life.begin(stage);
  const ends = new Map<Phase, PhaseEnd>();
  for (const phase of phases) ends.set(phase, await life.run(phase));
  return ends;
}

function endOf(ends: Ends, phase: Phase): PhaseEnd {
  const end = ends.get(phase);
  if (!end) throw new Error(`no end of ${phase}`);
  return end;
}

function union(one: readonly Point[], two: readonly Point[]): Point[] {
  return [...new Map([...one, ...two].map((point) => [textOf(point), point])).values()];
}

function shuffled<T>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, at: Math.random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

interface CampaignParts {
  readonly stage: Stage;
  readonly reference: Ends;
  readonly report: Report;
  readonly queues: ReadonlyMap<Phase, Try[]>;
  readonly say: (text: string) => void;
}

class Campaign {
  readonly #parts: CampaignParts;
  #lives = 0;

  constructor(parts: CampaignParts) {
    this.#parts = parts;
  }

  async work(): Promise<void> {
    for (let plan = this.#nextPlan(); plan.size > 0; plan = this.#nextPlan()) await this.#live(plan);
  }

  /** One point of each phase that has any left. */
  #nextPlan(): Map<Phase, Try> {
    const plan = new Map<Phase, Try>();
    for (const phase of phases) {
      const next = this.#queue(phase).shift();
      if (next) plan.set(phase, next);
    }
    return plan;
  }

  #queue(phase: Phase): Try[] {
    return this.#parts.queues.get(phase) ?? [];
  }

  #tally(phase: Phase): Tally {
    return this.#parts.report.get(phase) ?? newTally(0, 0);
  }

  /** To the last phase of the plan, or to the first that goes wrong. */
  async #live(plan: Map<Phase, Try>): Promise<void> {
    const last = phases.findLastIndex((phase) => plan.has(phase));
    const left = new Map(plan);
    const number = ++this.#lives;
    await using life = await Life.begin(this.#parts.stage);
    for (const phase of phases.slice(0, last + 1)) {
      const point = left.get(phase);
      left.delete(phase);
      if (!(await this.#phase(life, phase, point))) break;
    }
    for (const [phase, point] of left) this.#queue(phase).push(point);
    const remaining = phases.map((phase) => this.#queue(phase).length);
    this.#parts.say(`life ${number} over; points left: ${remaining.join(" ")}`);
  }

  /** Whether the life can go on. */
  async #phase(life: Life, phase: Phase, point: Try | undefined): Promise<boolean> {
    const tally = this.#tally(phase);
    const fail = (problem: string): boolean => {
      const where = point ? textOf(point) : "undisturbed, after crashes in earlier phases";
      tally.failures.push(`${phase}, ${where}: ${problem}`);
      this.#parts.say(`FAILED ${phase}, ${where}: ${problem.slice(0, 2000)}`);
      return false;
    };
    try {
      const end = await life.run(phase, point);
      if (point) this.#count(tally, point, { end, phase });
      const difference = differenceOf(endOf(this.#parts.reference, phase), end);
      return difference === undefined || fail(difference);
    } catch (error) {
      if (point) tally.hits[point.where] += 1;
      return fail(error instanceof Wedged ? `wedged: ${error.message}` : String(error));
    }
  }

  #count(tally: Tally, point: Try, { end, phase }: { readonly end: PhaseEnd; readonly phase: Phase }): void {
    if (end.isFired) {
      tally.hits[point.where] += 1;
      tally.times.push(end.ms);
    } else if (point.attempts + 1 < mostAttempts) {
      this.#queue(phase).push({ ...point, attempts: point.attempts + 1 });
    } else tally.missed.push(textOf(point));
  }
}

/** The first way in which they differ, in a line or two. */
function differenceOf(expected: Outcome, actual: Outcome): string | undefined {
  if (!Bun.deepEquals(expected.runs, actual.runs)) {
    return `the program ran ${JSON.stringify(actual.runs)}, not ${JSON.stringify(expected.runs)}`;
  }
  if (!Bun.deepEquals(expected.changes, actual.changes)) {
    const names = new Set([...Object.keys(expected.changes), ...Object.keys(actual.changes)]);
    const others = [...names].filter((name) => expected.changes[name] !== actual.changes[name]);
    return others
      .map((name) => `${name}: ${actual.changes[name] ?? 0} times, not ${expected.changes[name] ?? 0}`)
      .join("; ");
  }
  const missing = expected.state.filter((line) => !actual.state.includes(line));
  const surplus = actual.state.filter((line) => !expected.state.includes(line));
  if (missing.length === 0 && surplus.length === 0) return undefined;
  return `the end is another:\n- ${missing.join("\n- ")}\n+ ${surplus.join("\n+ ")}`;
}
