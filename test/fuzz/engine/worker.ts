/**
 * Fuzzes targets in a process of its own, because an input may hang or kill it. Its arguments are a `Job` as JSON. It prints a line
 * before and after each target.
 */
import { targets } from "../targets/index.ts";
import { corpusInputs, decodeInput, encodeInput, readCorpus } from "./corpus.ts";
import { currentInputWriter } from "./current-input.ts";
import { fuzz } from "./fuzz.ts";
import type { Job, WorkerLine } from "./supervise.ts";

const job = JSON.parse(process.argv[2] ?? "") as Job;
const print = (line: WorkerLine): void => console.log(JSON.stringify(line));
const onInput = currentInputWriter(job.inputFile);

for (const target of targets.filter(({ name }) => job.targets.includes(name))) {
  print({ kind: "started", target: target.name });
  const before = process.cpuUsage();
  const deadline = job.seconds === undefined ? undefined : performance.now() + job.seconds * 1000;
  const { findings, reaching, rounds, branches } = await fuzz(target, {
    seed: job.seed,
    inputs: [...corpusInputs(readCorpus(target.name)), ...(job.inputs?.[target.name] ?? []).map(decodeInput)],
    shouldStop: (done) => (deadline === undefined ? done >= target.rounds : performance.now() >= deadline),
    onInput,
  });
  const { user, system } = process.cpuUsage(before);
  print({
    kind: "finished",
    result: {
      target: target.name,
      rounds,
      branches,
      cpuSeconds: (user + system) / 1e6,
      findings: Object.fromEntries(Array.from(findings, ([problem, input]) => [problem, encodeInput(input)])),
      reaching: reaching.map(encodeInput),
    },
  });
}
process.exit(0);
