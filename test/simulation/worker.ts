/** A process that runs every nth seed, and prints a report of each as a line of JSON: `worker.ts first last step`. */
import { runSeed } from "./run.ts";

const [first = 1, last = 1, step = 1] = process.argv.slice(2).map(Number);
for (let seed = first; seed <= last; seed += step) {
  const { story, log: _, ...report } = await runSeed(seed);
  const failed = report.violations.length > 0;
  process.stdout.write(`${JSON.stringify({ ...report, ...(failed && { story }) })}\n`);
}
process.exit(0);
