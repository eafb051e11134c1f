/** Many Stacks at once: how many come to success, when, and what they cost once they have nothing to do. */
import { inParallel } from "../bed/wait.ts";
import { isSucceeded } from "../bed/bed.ts";
import { Missed } from "../bed/watch.ts";
import { requestsOf } from "../bed/pod-requests.ts";
import { figure, type Curve, type Figure, type Point } from "../report/figures.ts";
import type { Context, Scenario } from "./scenario.ts";

/** Those that have not succeeded by then are said not to. */
const patienceMs = 240_000;
/** Until what the last update used has gone. */
const restMs = 5000;

export const crowd: Scenario = {
  name: "crowd",
  title: "many Stacks at once",
  async run(context) {
    const { bed, sizes, say } = context;
    await bed.program({ name: "crowd", text: "one" });
    const figures: Figure[] = [];
    const whole: Point[] = [];
    const curves: Curve[] = [];
    for (const count of sizes.crowds) {
      say(`${count} at once`);
      const names = Array.from({ length: count }, () => bed.newName("crowd"));
      const times = await createAll(context, names);
      figures.push(...timesOf(count, times), ...(await costOf(context, names)));
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

/** When each succeeded, of those that did. */
async function createAll({ bed, say }: Context, names: readonly string[]): Promise<number[]> {
  const times = new Map<string, number>();
  const begin = performance.now();
  const look = (): boolean => {
    for (const name of names) {
      const stack = bed.watch.stack(name);
      if (stack && !times.has(name) && isSucceeded(stack)) times.set(name, performance.now() - begin);
    }
    say(`${times.size} of ${names.length} have succeeded`);
    return times.size === names.length;
  };
  await inParallel(names, 8, async (name) => {
    await bed.create({ name, source: { programRef: { name: "crowd" } }, value: "red" });
  });
  try {
    await bed.watch.until(look, { timeoutMs: patienceMs, what: "the success of all" });
  } catch (error) {
    if (!(error instanceof Missed)) throw error;
  }
  return [...times.values()];
}

function timesOf(count: number, times: readonly number[]): Figure[] {
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

/** What a Stack costs that has nothing to do. Some of the pods may have made room for others. */
async function costOf({ bed }: Context, names: readonly string[]): Promise<Figure[]> {
  await Bun.sleep(restMs);
  const pods = names.flatMap((name) => {
    const stack = bed.watch.stack(name);
    const pod = stack && bed.watch.podOf(stack);
    return pod && pod.metadata.deletionTimestamp === undefined ? [pod] : [];
  });
  const running = pods.filter(({ status }) => status?.phase === "Running");
  const processes = await bed.processesOf(running);
  const perPod = running.map(({ metadata }) => processes.filter(({ podUid }) => podUid === metadata.uid));
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  const requests = pods.map((pod) => requestsOf(pod.spec));
  const count = names.length;
  const id = `rest.${count}`;
  const title = (what: string): string => `${count} Stacks at rest: ${what}`;
  return [
    ...figure({ id: `${id}.pods`, title: title("pods a Stack"), unit: "count" }, [pods.length / count]),
    ...figure({ id: `${id}.cpu`, title: title("CPU requested a Stack"), unit: "m" }, [
      sum(requests.map(({ cpuMillis }) => cpuMillis)) / count,
    ]),
    ...figure({ id: `${id}.memory`, title: title("memory requested a Stack"), unit: "MB" }, [
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
