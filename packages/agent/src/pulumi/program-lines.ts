/** Errors of Pulumi YAML name a line of the project's file. Of a Program nobody has that file: the line is put beside. */

const place = /\bPulumi\.ya?ml:(\d+),\d+(?:-\d+)?/;
const longest = 200;

export function quoteProgram(lines: readonly string[], program: string): string[] {
  const text = program.split("\n");
  return lines.map((line) => {
    const [, number] = place.exec(line) ?? [];
    const meant = number === undefined ? undefined : text[Number(number) - 1]?.trim();
    return meant ? `${line} (line ${number}: ${meant.slice(0, longest)})` : line;
  });
}
