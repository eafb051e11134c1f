/** Tables as kubectl prints them, in which nothing is truncated. */
import { plainText, type Column, type Text } from "./blocks.ts";
import type { Paint } from "./style.ts";
import { padEnd, printable, width, wrap } from "./wrap.ts";

interface Table {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly Text[])[];
}

const gap = 3;
/** With less space, the column that wraps gets its own lines below its row. */
const leastWrapWidth = 36;
const indent = "    ";

export function renderTable({ columns, rows }: Table, limit: number, paint: Paint): string[] {
  const cells = rows.map((row) => row.map((cell) => printable(plainText(cell))));
  const widths = columns.map(({ title }, at) =>
    Math.max(width(title), ...cells.map((row) => widestLine(row[at] ?? ""))),
  );
  const wrapAt = columns.findIndex(({ wraps }) => wraps);
  if (wrapAt < 0)
    return [titles(columns, widths, paint), ...rows.map((row, at) => line(row, cells[at], { widths, paint }))];
  return withWrappedColumn({ columns, rows, cells, widths, wrapAt, limit, paint });
}

const widestLine = (text: string): number => Math.max(0, ...text.split("\n").map(width));

interface Layout extends Table {
  readonly cells: readonly (readonly string[])[];
  readonly widths: readonly number[];
  readonly wrapAt: number;
  readonly limit: number;
  readonly paint: Paint;
}

function withWrappedColumn(layout: Layout): string[] {
  const { columns, rows, cells, widths, wrapAt, limit, paint } = layout;
  const others = widths.filter((_, at) => at !== wrapAt);
  const left = others.reduce((sum, each) => sum + each + gap, 0);
  const room = limit - left;
  const isBeside = room >= Math.min(leastWrapWidth, widths[wrapAt] ?? 0);
  const without = <T>(list: readonly T[]): T[] => list.filter((_, at) => at !== wrapAt);
  const head = titles(isBeside ? columns : without(columns), isBeside ? widths : others, paint);
  const lines = rows.flatMap((row, at) => {
    const text = cells[at]?.[wrapAt] ?? "";
    const short = line(without(row), without(cells[at] ?? []), { widths: others, paint });
    return isBeside ? beside(short, wrap(text, room), left) : below(short, text, limit);
  });
  return [head, ...lines];
}

function beside(short: string, [first = "", ...more]: readonly string[], left: number): string[] {
  const pad = " ".repeat(left);
  return [`${padEnd(short, left)}${first}`, ...more.map((each) => pad + each)].map((each) => each.trimEnd());
}

const below = (short: string, text: string, limit: number): string[] =>
  text === "" ? [short] : [short].concat(wrap(text, limit - indent.length).map((each) => indent + each));

function titles(columns: readonly Column[], widths: readonly number[], paint: Paint): string {
  const names = columns.map(({ title }, at) => padEnd(title, (widths[at] ?? 0) + gap));
  return paint("muted", names.join("").trimEnd());
}

interface Style {
  readonly widths: readonly number[];
  readonly paint: Paint;
}

/** Padding is not painted, so that trailing spaces can be removed. */
function line(row: readonly Text[], cells: readonly string[] = [], { widths, paint }: Style): string {
  return row
    .map((cell, at) => {
      const text = cells[at] ?? "";
      const tone = typeof cell === "string" ? "plain" : cell.tone;
      return paint(tone, text) + " ".repeat(Math.max(0, (widths[at] ?? 0) - width(text)) + gap);
    })
    .join("")
    .trimEnd();
}
