/** The series that Prometheus would store if it scraped an operator, and what it scraped did not change for a long time. */
import { release, type Series } from "./promtool.ts";

/** The metrics of an operator, and the time by its clock. */
export interface Scrape {
  readonly text: string;
  readonly atMs: number;
}

const sampleLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const labelPair = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g;

/** Prometheus renames a label of the same name as one of the target. */
const targetLabels = { namespace: release, job: release, pod: "operator-0" };

/**
 * Each value stays, and each counter grows as it did between the two scrapes, with every interval. promtool's clock starts
 * at zero, so timestamps are moved there.
 */
export function recordedSeries([first, last]: readonly [Scrape, Scrape], intervals: number): Series {
  const before = samplesIn(first.text);
  const series = [...samplesIn(last.text)].map(([name, value]) => {
    if (/_(timestamp|time)_seconds\{/.test(name)) return [name, `${value - last.atMs / 1000}+0x${intervals}`] as const;
    const growth = isCounter(name) ? value - (before.get(name) ?? 0) : 0;
    return [name, `${value}+${growth}x${intervals}`] as const;
  });
  const up = `up${rendered(targetLabels)}`;
  return Object.fromEntries([...series, [up, `1+0x${intervals}`]]);
}

const isCounter = (series: string): boolean => /^[a-z_]+_total\{/.test(series);

function samplesIn(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  for (const line of text.split("\n")) {
    const [, name, labels = "", value] = sampleLine.exec(line) ?? [];
    // Alerts use no histograms, which are most of the series.
    if (name === undefined || /_(bucket|sum|count)$/.test(name)) continue;
    const own = [...labels.matchAll(labelPair)].map(([, label = "", text = ""]): [string, string] => [
      label in targetLabels ? `exported_${label}` : label,
      text,
    ]);
    const all: Record<string, string> = { ...Object.fromEntries<string>(own), ...targetLabels };
    samples.set(`${name}${rendered(all)}`, Number(value));
  }
  return samples;
}

function rendered(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return `{${pairs.join(",")}}`;
}
