/** Line charts as SVG, without a library: axes from zero, round steps, one line for each series. Pure. */
import type { Point } from "./figures.ts";

interface Series {
  readonly name: string;
  readonly points: readonly Point[];
}

interface Chart {
  readonly title: string;
  /** The labels of the axes, with units. */
  readonly x: string;
  readonly y: string;
  readonly series: readonly Series[];
}

const size = { width: 720, height: 420 } as const;
const margin = { top: 48, right: 24, bottom: 56, left: 72 } as const;
const area = {
  width: size.width - margin.left - margin.right,
  height: size.height - margin.top - margin.bottom,
} as const;

/** Distinguishable with color vision deficiency. */
const colors = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9"] as const;

export function plot(chart: Chart): string {
  const points = chart.series.flatMap((series) => series.points);
  const x = axis(points.map((point) => point.x));
  const y = axis(points.map((point) => point.y));
  const place = (point: Point): Point => ({
    x: margin.left + (point.x / x.end) * area.width,
    y: margin.top + area.height - (point.y / y.end) * area.height,
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" font-family="sans-serif" font-size="13">`,
    `<rect width="${size.width}" height="${size.height}" fill="white"/>`,
    text({ x: margin.left, y: 24 }, chart.title, 'font-size="16" font-weight="bold"'),
    ...x.ticks.map((tick) => xTick(place({ x: tick, y: 0 }), tick)),
    ...y.ticks.map((tick) => yTick(place({ x: 0, y: tick }), tick)),
    text({ x: margin.left + area.width / 2, y: size.height - 14 }, chart.x, 'text-anchor="middle"'),
    text(
      { x: 18, y: margin.top + area.height / 2 },
      chart.y,
      `text-anchor="middle" transform="rotate(-90 18 ${margin.top + area.height / 2})"`,
    ),
    ...chart.series.map((series, index) => line(series.points.map(place), seriesColor(index))),
    ...chart.series.map((series, index) => legend(series.name, index)),
    "</svg>",
    "",
  ].join("\n");
}

interface Axis {
  readonly end: number;
  readonly ticks: readonly number[];
}

/** From zero to the first round step above the largest value. */
export function axis(values: readonly number[]): Axis {
  const largest = Math.max(0, ...values);
  if (largest === 0) return { end: 1, ticks: [0, 1] };
  const step = roundStep(largest / 5);
  const count = Math.ceil(largest / step - 1e-9);
  return { end: count * step, ticks: Array.from({ length: count + 1 }, (_, index) => tidy(index * step)) };
}

function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 5, 10].find((each) => each * power >= least * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** 0.30000000000000004 is 0.3. */
const tidy = (value: number): number => Number(value.toPrecision(12));

function xTick(at: Point, value: number): string {
  const mark = `<line x1="${px(at.x)}" y1="${px(at.y)}" x2="${px(at.x)}" y2="${px(at.y + 5)}" stroke="#444"/>`;
  return mark + text({ x: at.x, y: at.y + 20 }, String(value), 'text-anchor="middle"');
}

function yTick(at: Point, value: number): string {
  const grid = `<line x1="${px(at.x)}" y1="${px(at.y)}" x2="${px(at.x + area.width)}" y2="${px(at.y)}" stroke="#ddd"/>`;
  return grid + text({ x: at.x - 8, y: at.y + 4 }, String(value), 'text-anchor="end"');
}

function line(points: readonly Point[], color: string): string {
  const path = points.map(({ x, y }) => `${px(x)},${px(y)}`).join(" ");
  const dots = points.map(({ x, y }) => `<circle cx="${px(x)}" cy="${px(y)}" r="3.5" fill="${color}"/>`).join("");
  return `<polyline points="${path}" fill="none" stroke="${color}" stroke-width="2"/>${dots}`;
}

function legend(name: string, index: number): string {
  const y = margin.top + 14 + index * 20;
  const dot = `<circle cx="${margin.left + 16}" cy="${y - 4}" r="5" fill="${seriesColor(index)}"/>`;
  return dot + text({ x: margin.left + 28, y }, name);
}

const seriesColor = (index: number): string => colors[index % colors.length] ?? colors[0];

const px = (value: number): string => value.toFixed(1);

function text({ x, y }: Point, content: string, attributes = ""): string {
  return `<text x="${px(x)}" y="${px(y)}" ${attributes}>${escape(content)}</text>`;
}

function escape(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
