/**
 * Slow programs: how many updates run at once. Each CLI waits for a file before it begins its `up`, so the count depends on
 * nobody's speed; the pods ask for next to nothing, so that a small node takes them all.
 */
import { isTrue } from "../bed/kinds.ts";
import { inParallel } from "../bed/wait.ts";
import { stateFolder } from "../bed/stack.ts";
import { figure, type Findings } from "../report/figures.ts";
import type { Context, Scenario } from "./scenario.ts";

/** When no further one has begun for so long, none will. */
const stillMs = 90_000;
const patienceMs = 15 * 60_000;

export const held: Scenario = {
  name: "held",
  title: "slow programs at once",
  async run(context) {
    const { bed, sizes } = context;
    if (sizes.held === 0) return { figures: [], skipped: [{ title: held.title, reason: "not part of a quick run" }] };
    const names = Array.from({ length: sizes.held }, () => bed.newName("held"));
    await bed.yardstick.sh(`rm -f ${stateFolder}/release; touch ${stateFolder}/hold`);
    await bed.program({ name: "held", text: "one" });
    try {
      return await holdAll(context, names);
    } finally {
      await bed.yardstick.sh(`touch ${stateFolder}/release; rm -f ${stateFolder}/hold`);
      await bed.remove(...names);
    }
  },
};

async function holdAll(context: Context, names: readonly string[]): Promise<Findings> {
  const { bed, operator, say } = context;
  const begin = performance.now();
  await inParallel(names, 8, async (name) => {
    const requests = { cpu: "1m", memory: "1Mi" };
    await bed.create({ name, source: { programRef: { name: "held" } }, path: bed.shimPath, requests });
  });
  const { most, at } = await mostAtOnce(context, names.length);
  const pods = await operator.pods();
  const processes = await bed.processesOf(pods);
  const residentMb = processes.reduce((sum, each) => sum + each.residentMb, 0);
  say("letting them go");
  const released = performance.now();
  await bed.yardstick.sh(`touch ${stateFolder}/release`);
  const left = (): number => bed.watch.updates().filter((update) => !isTrue(update, "Complete")).length;
  const end = await bed.watch.until(() => left() === 0, { timeoutMs: patienceMs, what: "the end of all updates" });
  const count = names.length;
  return {
    figures: [
      ...figure({ id: "held.most", title: `${count} slow programs: updates at once`, unit: "count" }, [most]),
      ...figure({ id: "held.begun", title: `${count} slow programs: until so many ran`, unit: "ms" }, [at - begin]),
      ...figure({ id: "held.resident", title: `${count} slow programs: operator resident`, unit: "MB" }, [residentMb]),
      ...figure({ id: "held.ended", title: `${count} slow programs: let go → all ended`, unit: "ms" }, [
        end.at - released,
      ]),
    ],
  };
}

async function mostAtOnce({ bed, say }: Context, wanted: number): Promise<{ most: number; at: number }> {
  const seen = { most: 0, at: performance.now() };
  const end = seen.at + patienceMs;
  const stop = bed.watch.onChange(() => {
    const now = bed.watch.updates().filter(isUnderWay).length;
    if (now > seen.most) Object.assign(seen, { most: now, at: performance.now() });
  });
  try {
    while (seen.most < wanted && performance.now() < Math.min(end, seen.at + stillMs)) {
      bed.signal.throwIfAborted();
      say(`${seen.most} of ${wanted} updates run at once`);
      await Bun.sleep(500);
    }
  } finally {
    stop();
  }
  return seen;
}

type Update = ReturnType<Context["bed"]["watch"]["updates"]>[number];

const isUnderWay = (update: Update): boolean =>
  update.status?.startTime !== undefined && isTrue(update, "Progressing") && !isTrue(update, "Complete");
