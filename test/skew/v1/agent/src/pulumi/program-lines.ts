/** Errors of Pulumi YAML name a line of the project's file. Of a Program nobody has that file: the line is put beside. */
import { cut, told, type Clean } from "../system/clean-text.ts";

const place = /\bPulumi\.ya?ml:(\d+),\d+(?:-\d+)?/;
const longest = 200;

export function quoteProgram(lines: readonly Clean[], program: Clean): Clean[] {
  const text = program.split("\n");
  return lines.map((line) => {
    const number = Number(place.exec(line)?.[1]);
    // A line of clean text is clean.
    const meant = text[number - 1]?.trim() as Clean | undefined;
    return meant ? told`${line} (line ${number}: ${cut(meant, longest)})` : line;
  });
}
