/** The tables of the operations page. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { root } from "./pages.ts";

/** The code spans in the first cells of the rows of a section's table. */
export function listedOn(heading: string): string[] {
  const page = readFileSync(join(root, "docs/operations.md"), "utf8");
  const [section = ""] = page.slice(page.indexOf(`\n## ${heading}\n`) + 1).split("\n## ", 1);
  const cells = Array.from(section.matchAll(/^\| (`[^|]*`) +\|/gm), ([, cell = ""]) => cell);
  return cells.flatMap((cell) => Array.from(cell.matchAll(/`([^`]+)`/g), ([, span = ""]) => span));
}
