/** The parts of a runbook. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { root } from "./pages.ts";

/** In this order. */
export const runbookSections = ["What it means", "Find the cause", "Fix", "Verify"] as const;
export type RunbookSection = (typeof runbookSections)[number];

export type Runbook = Readonly<Record<RunbookSection, string>>;

export const runbookFolder = join(root, "docs/runbooks");

/** Throws unless it has exactly the sections of every runbook. */
export function readRunbook(alert: string): Runbook {
  return parseRunbook(readFileSync(join(runbookFolder, `${alert}.md`), "utf8"));
}

export function parseRunbook(page: string): Runbook {
  const [, ...parts] = page.split(/^## /m);
  const titles = parts.map((part) => part.slice(0, part.indexOf("\n")));
  if (titles.join() !== runbookSections.join()) throw new Error(`a runbook has other sections: ${titles.join(", ")}`);
  return Object.fromEntries(parts.map((part, index) => [titles[index], part])) as Runbook;
}
