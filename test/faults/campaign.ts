/**
 * Lives with a crash in each phase, until every point has had its turn. What a phase comes to must be what it comes to in a
 * life without crashes.
 */
import { pointsOf, textOf, type Point, type Where } from "./fuse.ts";
import { differenceOf, type Failure } from "./judgement.ts";
import { Life, Stuck, type PhaseEnd } from "./life.ts";
import type { Blow } from "./operators.ts";
import { phases, type Phase } from "./script.ts";
import type { Stage } from "./stage.ts";

export interface Tally {
  /** The calls of an undisturbed phase. */
  readonly calls: number;
  readonly points: number;
  readonly hits: Record<Where, number>;
  /** Points that no life came by, though several tried. */
  readonly missed: string[];
  readonly failures: Failure[];
  /** Requests that the API server answered with 403. */
  forbidden: number;
  /** Of disturbed phases, in milliseconds. */
  readonly times: number[];
}

export type Report = ReadonlyMap<Phase, Tally>;

export interface CampaignOptions {
  readonly stage: Stage;
  /** Lives at once. */
  readonly width: number;
  /** What happens to the operator; it is killed when absent. */
  readonly blow?: Blow;
  /** Only so many points of each phase, others every time; all when absent. */
  readonly sample?: number;
  /** Of a life without crashes; lived anew when absent. */
  readonly reference?: Ends;
  /** Only those points whose text, such as `destroy, before apply stacks/status web #2`, matches; all when absent. */
  readonly only?: RegExp;
  /** No life begins any more once it is aborted. */
  readonly signal?: AbortSignal;
  readonly say?: (text: string) => void;
}

interface Try extends Point {
  readonly attempts: number;
}

/** A phase that fails in every life would otherwise be lived without end, since what comes after it is never reached. */
const mostFailures = 20;
const mostAttempts = 3;
/** A life that goes on and on gathers Updates. */
const mostEncores = 3;

export async function runCampaign(options: CampaignOptions): Promise<Report> {
  const { stage, width, sample, say = () => undefined } = options;
  const reference = options.reference ?? (await undisturbed(stage));
  // Some calls are made now and then only: a second look finds more of them.
  const second = sample === undefined ? await undisturbed(stage) : reference;
  const report = new Map<Phase, Tally>();
  const queues = new Map<Phase, Try[]>();
  for (const phase of phases) {
    const [one, two] = [endOf(reference, phase), endOf(second, phase)];
    const difference = differenceOf(one, two);
    if (difference) throw new Error(`${phase} without a crash (${difference.kind}): ${difference.text}`);
    const points = shuffled(union(pointsOf(one.calls), pointsOf(two.calls)));
    const asked = points.filter((point) => options.only?.test(`${phase}, ${textOf(point)}`) ?? true);
    const chosen = asked.slice(0, sample ?? asked.length);
    queues.set(
      phase,
      chosen.map((point) => ({ ...point, attempts: 0 })),
    );
    report.set(phase, newTally(one.calls.length, chosen.length));
  }
  if (![...report.values()].some(({ points }) => points > 0)) throw new Error(noPoint(options.only));
  const campaign = new Campaign({ stage, reference, report, queues, say, blow: options.blow ?? "kill" });
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

export async function undisturbed(stage: Stage): Promise<Ends> {
  await using life = await Life.begin(stage);
  const ends = new Map<Phase, PhaseEnd>();
  for (const phase of phases) ends.set(phase, await life.run(phase));
  return ends;
}

export function endOf(ends: Ends, phase: Phase): PhaseEnd {
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
  readonly blow: Blow;
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

  async work(signal?: AbortSignal): Promise<void> {
    for (let plan = this.#nextPlan(); plan.size > 0; plan = this.#nextPlan()) {
      if (signal?.aborted) return;
      await this.#live(plan);
    }
  }

  /** One point of each phase that has any left; none once it is clear that something is wrong everywhere. */
  #nextPlan(order: readonly Phase[] = phases): Map<Phase, Try> {
    const plan = new Map<Phase, Try>();
    if (this.#failures() >= mostFailures) return plan;
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

  /** To the last phase of the plan, or to the first that goes wrong. */
  async #live(plan: Map<Phase, Try>): Promise<void> {
    const number = ++this.#lives;
    await using life = await Life.begin(this.#parts.stage, { blow: this.#parts.blow });
    let isWell = await this.#phases(life, phases, plan);
    for (let round = 1; isWell && round <= mostEncores && this.#isEncoreDue(life); round++) {
      const order: readonly Phase[] =
        life.lastPhase === "destroy" ? ["prerequisite", "destroy"] : ["destroy", "prerequisite"];
      isWell = await this.#phases(life, order, this.#nextPlan(order));
    }
    const remaining = phases.map((phase) => this.#queue(phase).length);
    this.#parts.say(`life ${number} over; points left: ${remaining.join(" ")}`);
  }

  /** The dependent Stack comes and goes again in a life that is well: to come so far in another one would cost more. */
  #isEncoreDue({ lastPhase }: Life): boolean {
    const others = (["new commit", "spec change", "resync"] as const).map((phase) => this.#queue(phase).length);
    const isThere = lastPhase === "prerequisite" || lastPhase === "destroy";
    return isThere && this.#queue("prerequisite").length > Math.max(...others);
  }

  /** Whether all went well. What the life did not come to is for another one. */
  async #phases(life: Life, order: readonly Phase[], plan: ReadonlyMap<Phase, Try>): Promise<boolean> {
    const left = new Map(plan);
    const last = order.findLastIndex((phase) => plan.has(phase));
    for (const phase of order.slice(0, last + 1)) {
      const point = left.get(phase);
      left.delete(phase);
      if (await this.#phase(life, phase, point)) continue;
      for (const [phase, point] of left) this.#queue(phase).push(point);
      return false;
    }
    return true;
  }

  /** Whether the life can go on. */
  async #phase(life: Life, phase: Phase, point: Try | undefined): Promise<boolean> {
    const tally = this.#tally(phase);
    const fail = ({ kind, text }: Failure): boolean => {
      const where = point ? textOf(point) : "undisturbed, after crashes in earlier phases";
      const told = `${phase}, ${where}: ${text}`;
      tally.failures.push({ kind, text: told });
      this.#parts.say(`FAILED (${kind}) ${told.slice(0, 2000)}; see ${life.folder}`);
      return false;
    };
    try {
      const end = await life.run(phase, point);
      tally.forbidden += end.forbidden.length;
      if (point) this.#count(tally, point, { end, phase });
      const difference = differenceOf(endOf(this.#parts.reference, phase), end);
      return difference === undefined || fail(difference);
    } catch (error) {
      if (point) tally.hits[point.where] += 1;
      tally.forbidden += life.takeForbidden().length;
      return fail(
        error instanceof Stuck ? { kind: "stuck", text: error.message } : { kind: "other", text: String(error) },
      );
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
