/**
 * Slow programs: how many updates run at once. Each CLI waits for a file before it starts its `up`, so the count does not
 * depend on speed; the pods request almost nothing, so that all of them fit on a small node.
 */
import { isTrue } from "../bed/kinds.ts";
import { inParallel } from "../bed/wait.ts";
import { stateFolder } from "../bed/stack.ts";
import { figure, type Findings } from "../report/figures.ts";
import type { Context, Scenario } from "./scenario.ts";

/** If no further update has started for this long, none will. */
const quietMs = 90_000;
const timeoutMs = 15 * 60_000;

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
  const { bed, operator, report } = context;
  const begin = performance.now();
  await inParallel(names, 8, async (name) => {
    const requests = { cpu: "1m", memory: "1Mi" };
    await bed.create({ name, source: { programRef: { name: "held" } }, path: bed.shimPath, requests });
  });
  const { most, at } = await maxConcurrent(context, names.length);
  const pods = await operator.pods();
  const processes = await bed.podProcesses(pods);
  const residentMb = processes.reduce((sum, each) => sum + each.residentMb, 0);
  report("releasing them");
  const released = performance.now();
  await bed.yardstick.sh(`touch ${stateFolder}/release`);
  const left = (): number => bed.watch.updates().filter((update) => !isTrue(update, "Complete")).length;
  const end = await bed.watch.until(() => left() === 0, { timeoutMs, what: "all updates to end" });
  const count = names.length;
  return {
    figures: [
      ...figure({ id: "held.most", title: `${count} slow programs: concurrent updates`, unit: "count" }, [most]),
      ...figure({ id: "held.begun", title: `${count} slow programs: until that number ran`, unit: "ms" }, [at - begin]),
      ...figure({ id: "held.resident", title: `${count} slow programs: operator resident`, unit: "MB" }, [residentMb]),
      ...figure({ id: "held.ended", title: `${count} slow programs: released → all ended`, unit: "ms" }, [
        end.at - released,
      ]),
    ],
  };
}

async function maxConcurrent({ bed, report }: Context, wanted: number): Promise<{ most: number; at: number }> {
  const seen = { most: 0, at: performance.now() };
  const end = seen.at + timeoutMs;
  const stop = bed.watch.onChange(() => {
    const now = bed.watch.updates().filter(isRunning).length;
    if (now > seen.most) Object.assign(seen, { most: now, at: performance.now() });
  });
  try {
    while (seen.most < wanted && performance.now() < Math.min(end, seen.at + quietMs)) {
      bed.signal.throwIfAborted();
      report(`${seen.most} of ${wanted} updates run`);
      await Bun.sleep(500);
    }
  } finally {
    stop();
  }
  return seen;
}

type Update = ReturnType<Context["bed"]["watch"]["updates"]>[number];

const isRunning = (update: Update): boolean =>
  update.status?.startTime !== undefined && isTrue(update, "Progressing") && !isTrue(update, "Complete");
