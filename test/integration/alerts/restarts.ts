/** The series of an operator that ends again and again, as Prometheus stores them. */
import type { Series } from "./promtool.ts";

/** In intervals: a process runs for so long, and the next one starts so long after its start. */
const [running, period] = [3, 5];

/** One evaluation in each state of such an operator. */
export const restartPhases = Array.from({ length: period }, (_, index) => index);

/** A container that restarts keeps its pod. One that is replaced has another name, so its series are others. */
export type Restarted = "container" | "pod";

/** `series` as they would be if the operator ran all the time. */
export function restarting(series: Series, what: Restarted, intervals: number): Series {
  const lives = Array.from({ length: Math.ceil(intervals / period) }, (_, index) => index);
  const entries = Object.entries(series).flatMap(([name, values]): (readonly [string, string])[] => {
    const given = expand(values);
    const ofLives = lives.map((life) => valuesOf(name, given.slice(life * period, life * period + running), what));
    if (what === "container") return [[name, ofLives.join(" ")]];
    return ofLives.map((own, life) => [
      name.replace(/pod="[^"]*"/, `pod="operator-${life}"`),
      life === 0 ? own : `_x${life * period} ${own}`,
    ]);
  });
  return Object.fromEntries(entries);
}

/** Prometheus ends the series of a target that does not respond, except for `up`, and all of a target that does not exist. */
function valuesOf(name: string, given: readonly string[], what: Restarted): string {
  const first = /^[a-z_]+_total\{/.test(name) ? Number(given[0]) : 0;
  const own = given.map((value) => (Number.isNaN(Number(value)) ? value : String(Number(value) - first)));
  const isKnownToBeDown = name.startsWith("up{") && what === "container";
  return [...own, ...(isKnownToBeDown ? ["0", "0"] : ["stale", "_"])].join(" ");
}

/** The values in promtool's notation, one by one. */
function expand(values: string): string[] {
  return values.split(" ").flatMap((each) => {
    const [, first, growth = "0", times] = /^(-?[\d.]+)([+-][\d.]+)?x(\d+)$/.exec(each) ?? [];
    if (first === undefined) return [each];
    return Array.from({ length: Number(times) + 1 }, (_, index) => String(Number(first) + index * Number(growth)));
  });
}
