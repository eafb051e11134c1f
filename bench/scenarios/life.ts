/** The lifecycle of a Stack: create, change, request an update, destroy. */
import type { Usage } from "../bed/bed.ts";
import { stacks } from "../bed/kinds.ts";
import { Timeline, type Phase } from "../bed/timeline.ts";
import { figure, type Findings, type Skipped } from "../report/figures.ts";
import { quantile } from "../report/statistics.ts";
import type { Context, Scenario } from "./scenario.ts";

export const life: Scenario = {
  name: "life",
  title: "the lifecycle of a Stack",
  async run(context) {
    const { rounds } = context.sizes;
    const times = new Times();
    const skipped: Skipped[] = [];
    for (let round = 1; round <= rounds; round += 1) {
      const report = (text: string): void => context.report(`round ${round} of ${rounds}: ${text}`);
      try {
        const before = await context.bed.usage(context.operator);
        await runLifecycle({ ...context, report }, times);
        times.addUsage(before, await context.bed.usage(context.operator));
      } catch (error) {
        context.bed.signal.throwIfAborted();
        skipped.push({ title: `${life.title}, round ${round}`, reason: errorMessage(error) });
      }
    }
    return { ...findings(times), skipped };
  },
};

const errorMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error));

type Event = "create" | "program" | "spec" | "request" | "destroy";

/** Each time with that of the bare CLI at the same moment. */
class Times {
  readonly bareUp: number[] = [];
  readonly bareStart: number[] = [];
  readonly createPhases: (readonly Phase[])[] = [];
  /** Of the operator, for each complete lifecycle. */
  readonly requests: number[] = [];
  readonly cpuMs: number[] = [];
  readonly #taken = new Map<Event, { readonly ms: number; readonly bareMs: number }[]>();

  async measureBare({ bed }: Context): Promise<void> {
    const { upMs, startMs } = await bed.yardstick.measure();
    this.bareUp.push(upMs);
    this.bareStart.push(startMs);
  }

  add(event: Event, ms: number): void {
    const bareMs = this.bareUp.at(-1) ?? Number.NaN;
    this.#taken.set(event, [...(this.#taken.get(event) ?? []), { ms, bareMs }]);
  }

  addUsage(before: Usage, after: Usage): void {
    this.requests.push(after.requests - before.requests);
    this.cpuMs.push(after.cpuMs - before.cpuMs);
  }

  of(event: Event): { readonly values: number[]; readonly bare: number[] } {
    const taken = this.#taken.get(event) ?? [];
    return { values: taken.map(({ ms }) => ms), bare: taken.map(({ bareMs }) => bareMs) };
  }
}

async function runLifecycle(context: Context, times: Times): Promise<void> {
  const { bed } = context;
  await times.measureBare(context);
  const name = bed.newName("life");
  await bed.program({ name, text: "one" });
  await create(context, times, name);

  const timed = async (event: Event, change: () => Promise<unknown>, seen: () => Promise<number>): Promise<void> => {
    context.report(event);
    const begin = performance.now();
    await change();
    times.add(event, (await seen()) - begin);
  };
  await timed(
    "program",
    () => bed.program({ name, text: "two" }),
    () => bed.succeeded(name, { text: "two", value: "red" }),
  );
  await times.measureBare(context);
  await timed(
    "spec",
    () => bed.patch(name, { spec: { config: { value: "blue" } } }),
    () => bed.succeeded(name, { text: "two", value: "blue" }),
  );
  const request = crypto.randomUUID();
  await timed(
    "request",
    () => bed.request(name, request),
    () => bed.requestSucceeded(name, request),
  );
  await timed(
    "destroy",
    () => bed.client.delete(stacks, { namespace: bed.namespace, name }),
    () => bed.deleted(name),
  );
}

async function create({ bed, report }: Context, times: Times, name: string): Promise<void> {
  report("create");
  const timeline = new Timeline(bed.watch, name);
  const begin = performance.now();
  try {
    await bed.create({ name, destroyOnFinalize: true, source: { programRef: { name } }, value: "red" });
    const end = await bed.succeeded(name, { text: "one", value: "red" });
    times.createPhases.push(timeline.phases(begin, end));
    times.add("create", end - begin);
  } finally {
    timeline.stop();
  }
}

const titles: readonly (readonly [Event, string])[] = [
  ["create", "create → succeeded"],
  ["program", "Program changed → succeeded"],
  ["spec", "spec changed → succeeded"],
  ["request", "update requested → succeeded"],
  ["destroy", "delete → destroyed and deleted"],
];

function findings(times: Times): Findings {
  const program = times.of("program");
  const overhead = program.values.map((ms, index) => ms - (program.bare[index] ?? Number.NaN));
  return {
    figures: [
      ...figure({ id: "bare.start", title: "bare CLI: pulumi version", unit: "ms" }, times.bareStart),
      ...figure({ id: "bare.up", title: "bare CLI: pulumi up", unit: "ms" }, times.bareUp),
      ...titles.flatMap(([event, title]) => {
        const { values, bare } = times.of(event);
        return figure({ id: event, title, unit: "ms" }, values, bare);
      }),
      ...figure({ id: "overhead", title: "Program changed: overhead over the bare CLI", unit: "ms" }, overhead),
      ...figure(
        { id: "life.requests", title: "one lifecycle: requests of the operator", unit: "count" },
        times.requests,
      ),
      ...figure({ id: "life.cpu", title: "one lifecycle: CPU time of the operator", unit: "ms" }, times.cpuMs),
    ],
    profiles: [{ title: "create → succeeded, observed through the API (medians)", parts: medians(times.createPhases) }],
  };
}

function medians(rounds: readonly (readonly Phase[])[]): Phase[] {
  return (rounds[0] ?? []).map(({ name }, index) => ({
    name,
    ms: quantile(
      rounds.map((phases) => phases[index]?.ms ?? 0),
      0.5,
    ),
  }));
}
