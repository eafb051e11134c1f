/** Whether what a process uses grows under a constant load. Pure. */
import { quantile } from "../../report/statistics.ts";

/** What was measured at one time. */
export interface Sample {
  readonly seconds: number;
  readonly values: Readonly<Record<string, number>>;
}

export interface Gate {
  /** The key of a sample's value. */
  readonly series: string;
  readonly title: string;
  readonly unit: "MB" | "";
  /**
   * The growth over the measured time that garbage collection, fragmentation and chance explain: a share of the median,
   * but not less than `least`.
   */
  readonly share: number;
  readonly least: number;
}

export interface Finding {
  readonly gate: Gate;
  readonly median: number;
  /** Over the whole measured time, from the slope. */
  readonly growth: number;
  readonly limit: number;
  readonly isPassed: boolean;
}

export const gates: readonly Gate[] = [
  { series: "resident", title: "operator, resident memory", unit: "MB", share: 0.15, least: 10 },
  { series: "heap", title: "operator, heap after garbage collection", unit: "MB", share: 0.25, least: 5 },
  { series: "files", title: "operator, open files", unit: "", share: 0.2, least: 8 },
  { series: "sockets", title: "operator, sockets", unit: "", share: 0.2, least: 8 },
  { series: "threads", title: "operator, threads", unit: "", share: 0.2, least: 4 },
  { series: "queued", title: "operator, queued keys", unit: "", share: 0, least: 5 },
  { series: "objects", title: "operator, objects in its stores", unit: "", share: 0.2, least: 20 },
  { series: "agentResident", title: "agent, resident memory", unit: "MB", share: 0.15, least: 10 },
  { series: "agentFiles", title: "agent, open files", unit: "", share: 0.2, least: 8 },
];

/** Enough for a slope. */
const leastSamples = 12;
/** The lowest value of each part is what remains after garbage collection. */
const parts = 12;

export function judge(samples: readonly Sample[]): Finding[] {
  return gates.map((gate) => judgeSeries(gate, samples));
}

function judgeSeries(gate: Gate, samples: readonly Sample[]): Finding {
  const points = samples.flatMap(({ seconds, values }) => {
    const value = values[gate.series];
    return value === undefined ? [] : [{ seconds, value }];
  });
  const values = points.map(({ value }) => value);
  const median = quantile(values, 0.5);
  const seconds = (points.at(-1)?.seconds ?? 0) - (points[0]?.seconds ?? 0);
  const growth = slope(floors(points)) * seconds;
  const limit = Math.max(gate.least, gate.share * median);
  return { gate, median, growth, limit, isPassed: points.length >= leastSamples && growth <= limit };
}

interface Point {
  readonly seconds: number;
  readonly value: number;
}

/** The lowest point of each of the parts. */
function floors(points: readonly Point[]): Point[] {
  const size = Math.max(1, Math.floor(points.length / parts));
  const chunks = Array.from({ length: Math.floor(points.length / size) }, (_, index) =>
    points.slice(index * size, (index + 1) * size),
  );
  return chunks.map((chunk) => chunk.reduce((lowest, point) => (point.value < lowest.value ? point : lowest)));
}

/** The Theil–Sen estimator, the median of the slopes of all pairs: a few outliers do not change it. */
export function slope(points: readonly Point[]): number {
  const slopes = points.flatMap((from, index) =>
    points
      .slice(index + 1)
      .filter((to) => to.seconds > from.seconds)
      .map((to) => (to.value - from.value) / (to.seconds - from.seconds)),
  );
  return slopes.length === 0 ? 0 : quantile(slopes, 0.5);
}
