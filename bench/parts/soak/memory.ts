/** Whether resident memory grows under a constant load. Pure. */
import { quantile } from "../../report/statistics.ts";

/** More than garbage collection and fragmentation change between two thirds of a run. */
const maxGrowth = 0.15;
const leastSamples = 6;

/** One message if the median of the last third of the samples, in megabytes, is well above that of the first third. */
export function memoryFaults(samples: readonly number[]): string[] {
  if (samples.length < leastSamples) return [`${samples.length} samples of the memory are too few: run it longer`];
  const third = Math.floor(samples.length / 3);
  const first = quantile(samples.slice(0, third), 0.5);
  const last = quantile(samples.slice(-third), 0.5);
  if (last <= first * (1 + maxGrowth)) return [];
  return [`resident memory grew from ${first.toFixed(1)} MB to ${last.toFixed(1)} MB`];
}
