/** Wrapping of plain text. Widths are those of a terminal: an emoji or a Chinese character has two columns. */

export const width = (text: string): number => Bun.stringWidth(text);

/**
 * The lines of a text, each at most `limit` wide. Line breaks in the text stay. A word that is longer than a line, such as a
 * URL or a URN, gets a line of its own and is not split, so that it can be copied.
 */
export function wrap(text: string, limit: number): string[] {
  return text.split("\n").flatMap((line) => wrapLine(line, Math.max(limit, 10)));
}

function wrapLine(line: string, limit: number): string[] {
  if (width(line) <= limit) return [line.trimEnd()];
  const indent = /^\s*/.exec(line)?.[0] ?? "";
  const lines: string[] = [];
  let current = indent;
  for (const word of line.trim().split(/\s+/)) {
    const isEmpty = current === indent;
    const longer = isEmpty ? `${indent}${word}` : `${current} ${word}`;
    if (isEmpty || width(longer) <= limit) current = longer;
    else {
      lines.push(current);
      current = `${indent}${word}`;
    }
  }
  return [...lines, current];
}

export const padEnd = (text: string, to: number): string => text + " ".repeat(Math.max(0, to - width(text)));

/**
 * Without the control characters by which text could move the cursor or change colors: messages contain output of programs
 * and names that others have chosen. Line breaks and tabs stay.
 */
export function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex -- it removes control characters
  return Bun.stripANSI(text).replaceAll(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g, "");
}
