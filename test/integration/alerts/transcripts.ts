/** What the commands of the runbooks print, kept in .build/runbooks, and whether it is what the pages show. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { root } from "../../docs/pages.ts";
import { readRunbook, type RunbookSection } from "../../docs/runbook.ts";

const folder = join(root, ".build/runbooks");
const fileOf = (alert: string): string => join(folder, `${alert}.txt`);

export function deleteTranscripts(): void {
  rmSync(folder, { recursive: true, force: true });
}

interface Printed {
  readonly section: RunbookSection;
  readonly command: string;
  readonly output: string;
}

export function transcribe(alert: string, { section, command, output }: Printed): void {
  mkdirSync(folder, { recursive: true });
  const text = `## ${section}\n$ ${command}\n${output.trimEnd()}\n\n`;
  writeFileSync(fileOf(alert), text, { flag: "a" });
}

/** The lines that a section shows, and that none of its commands has printed. Names, times and numbers may differ. */
export function unprintedLines(alert: string, section: RunbookSection): string[] {
  const parts = readFileSync(fileOf(alert), "utf8").split(/^## /m);
  const printed = parts.filter((part) => part.startsWith(`${section}\n`)).flatMap((part) => part.split("\n"));
  const patterns = [...new Set(printed.map(unspecific))];
  const isPrinted = (line: string): boolean => patterns.some((each) => isShownAs(each, unspecific(line)));
  return shownLines(readRunbook(alert)[section]).filter((line) => !isPassing(line) && !isPrinted(line));
}

/** The state of a Stack that continues lasts for a moment, in which no command may run. */
const isPassing = (line: string): boolean => / is being prepared for |\bStackProcessing\b/.test(line);

/** An ellipsis replaces the rest of a long line. */
const isShownAs = (printed: string, shown: string): boolean =>
  shown.endsWith("…") ? printed.startsWith(shown.slice(0, -1)) : printed === shown;

/** The lines of the `text` blocks. An ellipsis alone replaces other lines. */
function shownLines(section: string): string[] {
  return [...section.matchAll(/^```text\n([^]*?)^```$/gm)]
    .flatMap(([, block = ""]) => block.split("\n"))
    .filter((line) => line.trim() !== "" && line !== "…");
}

/** The line without what differs between two runs. */
function unspecific(line: string): string {
  return line
    .replaceAll(/https?:\/\/[^\s:]+(?::\d+)?\/\S*?\.git/g, "<repository>")
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<uuid>")
    .replaceAll(/controller-manager-[a-z0-9]+-[a-z0-9]{5}(?![a-z0-9])/g, "<pod>")
    .replaceAll(/\b(?=[a-f]*\d)[0-9a-f]{7,}\b/g, "<hash>")
    .replaceAll(/\d+(?:st|nd|rd|th)\b/g, "<number>")
    .replaceAll(/\b(?:\d+[dhms])+\b/g, "<age>")
    .replaceAll(/\d+/g, "<number>")
    .replaceAll(/\s+/g, " ")
    .trim();
}
