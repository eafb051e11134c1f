/** For tests: a recording of a terminal as an animated SVG, for the README. The same frames give the same file. */
import { escaped } from "../graph-svg.ts";
import { Terminal, type Cell } from "./terminal.ts";

export interface Shot {
  /** What the program prints. */
  readonly output: string;
  /** How long it is shown. */
  readonly seconds: number;
}

const line = { height: 18, character: 8.4, padding: 12 } as const;

const colors: Readonly<Record<number, string>> = {
  1: 'font-weight="bold"',
  2: 'fill="#8b949e"',
  31: 'fill="#ff7b72"',
  32: 'fill="#3fb950"',
  33: 'fill="#d29922"',
};

interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** Each shot is visible in its part of the time, and the last one stays for viewers that do not animate. */
export function recording(shots: readonly Shot[], { columns, rows }: Size): string {
  const terminal = new Terminal();
  const total = shots.reduce((sum, { seconds }) => sum + seconds, 0);
  const width = Math.round(columns * line.character + 2 * line.padding);
  const height = rows * line.height + 2 * line.padding;
  let start = 0;
  const groups = shots.map(({ output, seconds }, at) => {
    terminal.write(output);
    const shot = { from: start / total, to: (start + seconds) / total, isLast: at === shots.length - 1 };
    start += seconds;
    return group(terminal.cells.slice(-rows), shot, total);
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">`,
    `<rect width="100%" height="100%" rx="8" fill="#0d1117"/>`,
    `<g font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14" fill="#e6edf3">`,
    ...groups,
    "</g></svg>",
    "",
  ].join("\n");
}

interface Part {
  readonly from: number;
  readonly to: number;
  readonly isLast: boolean;
}

function group(lines: readonly (readonly Cell[])[], { from, to, isLast }: Part, seconds: number): string {
  const texts = lines.map((cells, at) => {
    const y = line.padding + (at + 1) * line.height - 4;
    return cells.length === 0 ? "" : `<text x="${line.padding}" y="${y}">${cells.map(span).join("")}</text>`;
  });
  const [start, end] = [from, to].map((each) => Number(each.toFixed(4)));
  const values = isLast ? `0;${start};1` : `0;${start};${end};1`;
  const states = isLast ? "hidden;visible;visible" : "hidden;visible;hidden;hidden";
  // Without animation, only the last shot is shown.
  return `<g visibility="${isLast ? "visible" : "hidden"}"><animate attributeName="visibility" calcMode="discrete" dur="${seconds}s" repeatCount="indefinite" keyTimes="${values}" values="${states}"/>${texts.join("")}</g>`;
}

/** Viewers collapse spaces, and do not agree on how to prevent it. */
const keepSpaces = (text: string): string => escaped(text).replaceAll(" ", "\u00A0");

function span({ text, codes }: Cell): string {
  const style = codes.map((code) => colors[code] ?? "").filter(Boolean);
  return style.length === 0 ? keepSpaces(text) : `<tspan ${style.join(" ")}>${keepSpaces(text)}</tspan>`;
}
