/** The commands of the pages for incidents, all of which tests execute: on an API server, or on a cluster. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { commandsIn } from "./commands.ts";
import { root } from "./pages.ts";

export const stepPages = ["break-glass.md", "disaster-recovery.md", "upgrade.md"] as const;
type StepPage = (typeof stepPages)[number];

/** A command, and the section that it is in. */
export interface Step {
  readonly page: StepPage;
  readonly heading: string;
  readonly line: string;
}

/** The steps of a section, in their order. */
export function stepsOf(page: StepPage, heading: string): Step[] {
  const steps = stepsOn(page).filter((step) => step.heading === heading);
  if (steps.length === 0) throw new Error(`docs/${page} has no section ${heading} with commands`);
  return steps;
}

export function stepsOn(page: StepPage): Step[] {
  const [, ...sections] = readFileSync(join(root, "docs", page), "utf8").split(/^## /m);
  return sections.flatMap((section) => {
    const heading = section.slice(0, section.indexOf("\n"));
    return [...commandsIn(section), ...typedIn(section)].map((line) => ({ page, heading, line }));
  });
}

/** The commands in blocks with what a terminal shows. */
function typedIn(section: string): string[] {
  const blocks = Array.from(section.matchAll(/^ *```text\n([^]*?)^ *```$/gm), ([, block = ""]) => block);
  const programs = /^ *(?:\$ )?((?:kubectl|helm|pulumi) .*)$/gm;
  return blocks.flatMap((block) => Array.from(block.matchAll(programs), ([, line = ""]) => line));
}

/** The first step that starts with this. */
export function stepStarting(steps: readonly Step[], start: string): Step {
  const found = steps.find(({ line }) => line.startsWith(start));
  if (!found) throw new Error(`no command starts with ${start}`);
  return found;
}

/** The steps before and after the first one that starts with this. */
export function splitAt(steps: readonly Step[], start: string): readonly [before: Step[], found: Step, after: Step[]] {
  const found = stepStarting(steps, start);
  const at = steps.indexOf(found);
  return [steps.slice(0, at), found, steps.slice(at + 1)];
}

/** What only pods can answer: test/e2e/install/chart.test.ts executes it. Every other step runs on an API server without nodes. */
export const needsPods = ({ line }: Step): boolean => /^(?:kubectl (?:exec|rollout) |pulumi )/.test(line);

/** Compares steps by where they are: several sections have the same command. */
export const stepName = ({ page, heading, line }: Step): string => `${page}, ${heading}: ${line}`;
