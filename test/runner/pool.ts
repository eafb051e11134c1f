/** Runs jobs of several queues side by side, so that jobs that wait and jobs that compute share the machine. */
import type { JobEnvironment } from "./jobs.ts";
import { addReports, emptyReport, type Report } from "./report.ts";
import type { Job } from "./suites.ts";

export interface Queue {
  readonly jobs: readonly Job[];
  /** The jobs wait for it. If it is undefined, it could not be prepared, and the jobs do not run. */
  readonly environment: Promise<JobEnvironment | undefined>;
}

type RunJob = (job: Job, environment: JobEnvironment) => Promise<Report>;

interface OpenQueue {
  readonly waiting: Job[];
  readonly environment: JobEnvironment;
  running: number;
}

export interface PoolSize {
  readonly width: number;
  /** So many more jobs, each of which starts when the machine has time for it. */
  readonly extra?: { readonly width: number; readonly whenIdle: () => Promise<void> };
}

const noExtra = { width: 0, whenIdle: () => Promise.resolve() };

/** Runs at most `width` jobs at a time, each queue in order. A free place goes to the queue that has the fewest jobs running. */
export async function runPool(
  queues: readonly Queue[],
  { width, extra = noExtra }: PoolSize,
  run: RunJob,
): Promise<Report> {
  const open: OpenQueue[] = [];
  const opening = queues.map(async ({ jobs, environment }) => {
    const prepared = await environment;
    if (prepared) open.push({ waiting: [...jobs], environment: prepared, running: 0 });
  });
  let total = emptyReport;
  const runFrom = async (queue: OpenQueue): Promise<void> => {
    const report = await runNext(queue, run);
    // Read `total` only now: other jobs may have added their reports.
    total = addReports(total, report);
  };
  const work = async (): Promise<void> => {
    for (let queue = nextQueue(open); queue; queue = nextQueue(open)) await runFrom(queue);
  };
  // The first worker starts when every environment is prepared, because preparing also needs the machine.
  const worker = async (_: unknown, index: number): Promise<void> => {
    for (const queue of index === 0 ? [Promise.all(opening)] : opening) {
      await queue;
      await work();
    }
  };
  const finished = Promise.all(Array.from({ length: width }, worker));
  const { width: extraWidth, whenIdle } = extra;
  const extraWorker = async (): Promise<void> => {
    while (await isFirst(whenIdle(), finished)) {
      const queue = nextQueue(open);
      if (queue) await runFrom(queue);
    }
  };
  await Promise.all([finished, ...Array.from({ length: extraWidth }, extraWorker)]);
  return total;
}

const isFirst = (one: Promise<unknown>, other: Promise<unknown>): Promise<boolean> =>
  Promise.race([one.then(() => true), other.then(() => false)]);

const nextQueue = (open: readonly OpenQueue[]): OpenQueue | undefined =>
  open.filter(({ waiting }) => waiting.length > 0).toSorted((a, b) => a.running - b.running)[0];

async function runNext(queue: OpenQueue, run: RunJob): Promise<Report> {
  const job = queue.waiting.shift();
  if (!job) return emptyReport;
  queue.running += 1;
  try {
    return await run(job, queue.environment);
  } finally {
    queue.running -= 1;
  }
}
