/** Many Stacks at once: how many succeed and when, and what they cost when they are idle. */
import { inParallel } from "../bed/wait.ts";
import { isSucceeded } from "../bed/bed.ts";
import { TimedOut } from "../bed/watch.ts";
import { requestsOf } from "../bed/pod-requests.ts";
import { figure, type Curve, type Figure, type Point } from "../report/figures.ts";
import type { Context, Scenario } from "./scenario.ts";

/** Stacks that have not succeeded by then count as failed. */
const timeoutMs = 240_000;
/** Until the processes of the last update have ended. */
const restMs = 5000;

export const crowd: Scenario = {
  name: "crowd",
  title: "many Stacks at once",
  async run(context) {
    const { bed, sizes, report } = context;
    await bed.program({ name: "crowd", text: "one" });
    const figures: Figure[] = [];
    const whole: Point[] = [];
    const curves: Curve[] = [];
    for (const count of sizes.crowds) {
      report(`${count} at once`);
      const names = Array.from({ length: count }, () => bed.newName("crowd"));
      const times = await createAll(context, names);
      figures.push(...timeFigures(count, times), ...(await costFigures(context, names)));
      if (times.length === count) whole.push({ x: count, y: Math.max(...times) / 1000 });
      if (count === Math.max(...sizes.crowds)) curves.push(arrivals(count, times));
      await bed.remove(...names);
    }
    curves.push({
      id: "crowd",
      title: "Stacks created at once: until all have succeeded",
      x: "Stacks",
      y: "seconds",
      points: whole,
    });
    return { figures, curves };
  },
};

/** When each of the successful Stacks succeeded. */
async function createAll({ bed, report }: Context, names: readonly string[]): Promise<number[]> {
  const times = new Map<string, number>();
  const begin = performance.now();
  const checkAll = (): boolean => {
    for (const name of names) {
      const stack = bed.watch.stack(name);
      if (stack && !times.has(name) && isSucceeded(stack)) times.set(name, performance.now() - begin);
    }
    report(`${times.size} of ${names.length} have succeeded`);
    return times.size === names.length;
  };
  await inParallel(names, 8, async (name) => {
    await bed.create({ name, source: { programRef: { name: "crowd" } }, value: "red" });
  });
  try {
    await bed.watch.until(checkAll, { timeoutMs, what: "all Stacks to succeed" });
  } catch (error) {
    if (!(error instanceof TimedOut)) throw error;
  }
  return [...times.values()];
}

function timeFigures(count: number, times: readonly number[]): Figure[] {
  const id = `crowd.${count}`;
  return [
    ...figure({ id: `${id}.done`, title: `${count} Stacks at once: succeeded`, unit: "count" }, [times.length]),
    ...figure({ id: `${id}.last`, title: `${count} Stacks at once: the last one after`, unit: "ms" }, [
      Math.max(0, ...times),
    ]),
    ...figure({ id: `${id}.each`, title: `${count} Stacks at once: each after`, unit: "ms" }, times),
  ];
}

function arrivals(count: number, times: readonly number[]): Curve {
  const sorted = times.toSorted((a, b) => a - b);
  return {
    id: "arrivals",
    title: `${count} Stacks created at once: how many have succeeded`,
    x: "seconds",
    y: "Stacks",
    points: [{ x: 0, y: 0 }, ...sorted.map((ms, index) => ({ x: ms / 1000, y: index + 1 }))],
  };
}

/** The cost of an idle Stack. Some pods may have been preempted by others. */
async function costFigures({ bed }: Context, names: readonly string[]): Promise<Figure[]> {
  await Bun.sleep(restMs);
  const pods = names.flatMap((name) => {
    const stack = bed.watch.stack(name);
    const pod = stack && bed.watch.podOf(stack);
    return pod && pod.metadata.deletionTimestamp === undefined ? [pod] : [];
  });
  const running = pods.filter(({ status }) => status?.phase === "Running");
  const processes = await bed.podProcesses(running);
  const perPod = running.map(({ metadata }) => processes.filter(({ podUid }) => podUid === metadata.uid));
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  const requests = pods.map((pod) => requestsOf(pod.spec));
  const count = names.length;
  const id = `rest.${count}`;
  const title = (what: string): string => `${count} Stacks at rest: ${what}`;
  return [
    ...figure({ id: `${id}.pods`, title: title("pods per Stack"), unit: "count" }, [pods.length / count]),
    ...figure({ id: `${id}.cpu`, title: title("CPU requested per Stack"), unit: "m" }, [
      sum(requests.map(({ cpuMillis }) => cpuMillis)) / count,
    ]),
    ...figure({ id: `${id}.memory`, title: title("memory requested per Stack"), unit: "MB" }, [
      sum(requests.map(({ memoryMb }) => memoryMb)) / count,
    ]),
    ...figure(
      { id: `${id}.resident`, title: title("resident in each pod"), unit: "MB" },
      perPod.map((own) => sum(own.map(({ residentMb }) => residentMb))),
    ),
    ...figure(
      { id: `${id}.anonymous`, title: title("of that anonymous"), unit: "MB" },
      perPod.map((own) => sum(own.map(({ anonymousMb }) => anonymousMb))),
    ),
  ];
}
