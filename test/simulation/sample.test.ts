/** A sample of `make simulate`. A seed decides everything, so the result does not depend on the machine. */
import { expect, setDefaultTimeout, test } from "bun:test";

import { repositoryRoot } from "../runner/suites.ts";
import { runSeeds, type WorkerReport } from "./seeds.ts";

setDefaultTimeout(300_000);

async function reports(first: number, last: number): Promise<WorkerReport[]> {
  const found = await Array.fromAsync(runSeeds({ first, last, width: 1 }));
  return found.toSorted((a, b) => a.seed - b.seed);
}

test("faults violate no invariant, and a seed has the same story every time", async () => {
  const all = await reports(1, 4);
  expect(all.flatMap(({ violations }) => violations)).toEqual([]);
  for (const { faults } of all) expect(faults).toBeGreaterThanOrEqual(3);
  // In another process, in which no other seed has run before.
  expect((await reports(3, 3))[0]?.digest).toBe(all[2]?.digest ?? "");
});

test("a seed that throws is a violation, with its story so far", async () => {
  const script = `
    import { Faults } from "./test/simulation/faults.ts";
    import { runSeed } from "./test/simulation/run.ts";
    Faults.prototype.inject = () => { throw new Error("a mistake"); };
    const { seed, violations, story } = await runSeed(2);
    console.log(JSON.stringify({ seed, violations, hasStory: story.length > 1 }));
    process.exit(0);`;
  const child = Bun.spawn([process.execPath, "-e", script], { cwd: repositoryRoot, stdout: "pipe", stderr: "inherit" });
  const report: unknown = JSON.parse(await new Response(child.stdout).text());
  expect(report).toEqual({
    seed: 2,
    violations: [expect.stringContaining("the seed threw: Error: a mistake")],
    hasStory: true,
  });
});

test("a seed needs no memory after its end", async () => {
  const script = `
    import { heapStats } from "bun:jsc";
    import { runSeed } from "./test/simulation/run.ts";
    await runSeed(2);
    await runSeed(3);
    Bun.gc(true);
    console.log(heapStats().objectTypeCounts.Response ?? 0);
    process.exit(0);`;
  const child = Bun.spawn([process.execPath, "-e", script], { cwd: repositoryRoot, stdout: "pipe", stderr: "inherit" });
  // Each replica has 13 watches when a seed ends; the collector may find a few of the last seed later.
  expect(Number(await new Response(child.stdout).text())).toBeLessThan(13);
  expect(await child.exited).toBe(0);
});
