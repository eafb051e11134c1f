/** Formats figures for people. Pure. */
import type { Unit } from "./figures.ts";

/** With its unit and about three digits. */
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
    case "/s":
      return `${Math.round(value)} ${unit}`;
    case "count":
      return `${Math.round(value * 100) / 100}`;
  }
}

export type Row = readonly string[];

/** Columns as wide as their longest cell; all but the first are right-aligned. */
export function columns(rows: readonly Row[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const cell = (text: string, column: number): string =>
    column === 0 ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0);
  return rows.map((row) => row.map(cell).join("  ").trimEnd());
}
