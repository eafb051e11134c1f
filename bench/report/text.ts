/** Figures as people read them. Pure. */
import type { Unit } from "./figures.ts";

/** With its unit, in three digits or so. */
export function amount(value: number, unit: Unit): string {
  switch (unit) {
    case "ms":
      return value >= 1000 ? `${(value / 1000).toFixed(value >= 100_000 ? 0 : 2)} s` : `${Math.round(value)} ms`;
    case "MB":
    case "KB":
      return `${value.toFixed(value < 10 ? 1 : 0)} ${unit}`;
    case "m":
      return `${value.toFixed(value < 10 ? 1 : 0)} m`;
    case "/h":
      return `${Math.round(value)} /h`;
    case "count":
      return `${Math.round(value * 100) / 100}`;
    default:
      return unit satisfies never;
  }
}

export type Row = readonly string[];

/** Columns as wide as their longest cell; all but the first stand to the right, as numbers do. */
export function columns(rows: readonly Row[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const cell = (text: string, column: number): string =>
    column === 0 ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0);
  return rows.map((row) => row.map(cell).join("  ").trimEnd());
}
