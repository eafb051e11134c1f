/** Pulumi YAML errors refer to lines of the project file. Users of a Program do not have that file, so the line is added. */
import { truncate, cleanText, type Clean } from "../system/clean-text.ts";

const location = /\bPulumi\.ya?ml:(\d+),\d+(?:-\d+)?/;
const maxLineChars = 200;

export function quoteProgram(lines: readonly Clean[], program: Clean): Clean[] {
  const text = program.split("\n");
  return lines.map((line) => {
    const number = Number(location.exec(line)?.[1]);
    // A line of clean text is clean.
    const quoted = text[number - 1]?.trim() as Clean | undefined;
    return quoted ? cleanText`${line} (line ${number}: ${truncate(quoted, maxLineChars)})` : line;
  });
}
