/**
 * `make soak`: the compiled operator and agents against a real API server for half an hour. Stacks change, are created and
 * deleted, agents are restarted, connections and streams are aborted. It fails if something is not deployed, or if memory,
 * handles or queues grow.
 *
 *   bun bench/parts/soak/main.ts [--minutes=30] [--leak] [--report=page]
 */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { repositoryRoot } from "@pko/cluster";
import { stacks } from "@pko/operator";
import { stopShared } from "@pko/testkit";

import { replacePart } from "../../../test/runner/page-part.ts";
import { operatorErrors, unexpected } from "../../../test/logs/errors.ts";
import { buildExecutables } from "../executables.ts";
import { judge } from "./gates.ts";
import { Loads } from "./loads.ts";
import { compareRest, isPassed, markdown, type SoakReport } from "./report.ts";
import { Sampler } from "./sampler.ts";
import { Scene } from "./scene.ts";

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "30" },
    /** Runs an operator with a leak, which must be detected. */
    leak: { type: "boolean", default: false },
    /** A page for the report. */
    report: { type: "string" },
  },
});

const minutes = Number(values.minutes);
if (!(minutes >= 1)) throw new Error(`MINUTES is ${values.minutes}: set it to a number that is not less than 1`);
/** Caches and the heap grow to their normal size first. */
const warmUpMinutes = Math.min(6, minutes / 3);
const progressMs = 30_000;
/** Of connections that were aborted and of responses that were replaced. */
const provokedErrors = [/ECONNRESET|injected by a test/];
const maxErrorLength = 500;

async function main(): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "pko-soak-"));
  try {
    console.error("compiling the operator and the agent");
    const executables = await buildExecutables(folder, values);
    await using scene = await Scene.open(executables);
    let passed = false;
    try {
      const report = await soak(scene);
      const text = markdown(report);
      console.log(text);
      if (values.report !== undefined)
        writeFileSync(values.report, replacePart(readFileSync(values.report, "utf8"), "report", text));
      passed = isPassed(report);
    } finally {
      if (!passed) await keepEvidence(scene);
    }
    return passed;
  } finally {
    await stopShared();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function soak(scene: Scene): Promise<SoakReport> {
  const end = AbortSignal.timeout(minutes * 60_000);
  const loads = new Loads(scene, end);
  await scene.operator.whileRunning(loads.prepare());
  const sampler = new Sampler(scene);
  const before = await sampler.atRest();
  scene.disturb();
  const progress = setInterval(() => console.error(progressLine(sampler, loads)), progressMs);
  const failures: string[] = [];
  const note = (error: unknown): void => void failures.push(error instanceof Error ? error.message : String(error));
  await scene.operator.whileRunning(Promise.all([loads.run(), sampler.run(end)])).catch(note);
  clearInterval(progress);
  const after = await scene.operator.whileRunning(sampler.atRest()).catch((error: unknown) => (note(error), {}));
  failures.push(...scene.forbidden.map((request) => `the operator got the response 403: ${request}`));
  const logged = operatorErrors(readFileSync(scene.operator.logFile, "utf8"));
  failures.push(...unexpected(logged, provokedErrors).map((line) => `logged: ${line.slice(0, maxErrorLength)}`));
  const metrics = await scene.operator.metrics();
  return {
    minutes,
    warmUpMinutes,
    machine: `${cpus().length} cores`,
    counts: loads.counts,
    requests: scene.requests,
    injectedFaults: scene.injectedFaults,
    watches: metrics.get("reflector_watches_total") ?? 0,
    findings: judge(sampler.samples.filter(({ seconds }) => seconds >= warmUpMinutes * 60)),
    rest: compareRest(before, after),
    failures: [...failures, ...scene.kubelet.faults.map(String)],
  };
}

/** What explains a failure, before the scene is removed. */
async function keepEvidence({ operator, shop }: Scene): Promise<void> {
  const folder = join(repositoryRoot, ".build/soak");
  mkdirSync(folder, { recursive: true });
  copyFileSync(operator.logFile, join(folder, "operator.log"));
  const { items } = await shop.client.list(stacks);
  writeFileSync(join(folder, "stacks.json"), JSON.stringify(items, undefined, 2));
  console.error(`the operator's log and the Stacks are in ${folder}`);
}

function progressLine({ seconds, samples }: Sampler, { counts }: Loads): string {
  const shown = Object.entries({ ...samples.at(-1)?.values, ...counts });
  return `${seconds.toFixed(0)} s: ${shown.map(([name, value]) => `${name} ${Math.round(value)}`).join(", ")}`;
}

process.exit((await main()) ? 0 : 1);
