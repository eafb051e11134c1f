/**
 * A long load test of the runtime: a watch that is reconnected while objects change, an mTLS server with
 * 200 long streams, and process groups that are killed and reaped. It fails if something is lost or if memory grows.
 *
 *   bun bench/parts/soak/main.ts [minutes]
 */
import { startApiServer } from "@pko/testkit";

import { memoryFaults } from "./memory.ts";
import { processChurn } from "./processes.ts";
import { streamServer } from "./streams.ts";
import { watchUnderEvents } from "./watch.ts";

const minutes = Number(process.argv[2] ?? 30);
const streams = 200;
/** The runtime's caches fill in the first minute; growth is measured after that. */
const warmUpMs = Math.min(60_000, minutes * 15_000);
const sampleMs = 5_000;
const reportMs = 30_000;

const server = await startApiServer();
const end = AbortSignal.timeout(minutes * 60_000);
const started = Date.now();
const samples: number[] = [];

const watch = watchUnderEvents(server, end);
const streaming = await streamServer(streams, end);
const processes = processChurn(end);
const sampling = setInterval(() => {
  if (Date.now() - started >= warmUpMs) samples.push(residentMegabytes());
}, sampleMs);
const report = setInterval(() => console.log(line()), reportMs);

await Promise.all([watch.done, streaming.done, processes.done]);
clearInterval(sampling);
clearInterval(report);
await server.stop();

console.log(line());
const faults = [...watch.faults(), ...streaming.faults(), ...processes.faults(), ...memoryFaults(samples)];
console.log(`resident memory: first ${samples.at(0)?.toFixed(1)} MB, last ${samples.at(-1)?.toFixed(1)} MB`);
for (const fault of faults) console.log(`fault: ${fault}`);
console.log(faults.length === 0 ? "no faults" : `${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);

function line(): string {
  const seconds = Math.round((Date.now() - started) / 1000);
  return `${String(seconds).padStart(5)} s  ${residentMegabytes().toFixed(1)} MB  ${watch.summary()}  ${streaming.summary()}  ${processes.summary()}`;
}

function residentMegabytes(): number {
  return process.memoryUsage().rss / 1e6;
}
