import { expect, test } from "bun:test";

import { withRow } from "./results.ts";

const page = (table: string): string => `text\n\n<!-- results -->\n\n${table}<!-- end of results -->\n\nmore\n`;
const head = "| Kubernetes | Pulumi CLI | machine | suites | passed | failed | skipped | on |";
const line = "| --- | --- | --- | --- | --- | --- | --- | --- |";
const row = (kubernetes: string, ...counts: readonly string[]): string[] => [
  kubernetes,
  "3.259.0",
  "amd64, cgroups v1",
  "e2e",
  ...counts,
];
const written = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;

test("results are added to the table of the page, newer versions first", () => {
  const [old, current] = [row("1.9.4", "1", "0", "0", "2026-01-01"), row("1.31.4", "2", "0", "0", "2026-01-02")];
  const once = withRow(page(""), old);
  expect(once).toBe(page([head, line, written(old), "", ""].join("\n")));
  expect(withRow(once, current)).toBe(page([head, line, written(current), written(old), "", ""].join("\n")));
});

test("a later result of the same versions replaces the earlier one, also if the table was formatted", () => {
  const before = page(
    `${head}\n${line}\n| 1.31.4     | 3.259.0 | amd64, cgroups v1 | e2e | 1 | 1 | 0 | 2026-01-01 |\n\n`,
  );
  const later = row("1.31.4", "2", "0", "0", "2026-01-02");
  expect(withRow(before, later)).toBe(page([head, line, written(later), "", ""].join("\n")));
});

test("a page without a place for results is reported", () => {
  expect(() => withRow("text", row("1.31.4"))).toThrow("the page has no part results");
});
