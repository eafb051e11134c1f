/** Text of others in Markdown: always as code, so that it can neither format anything nor mention anybody. Pure. */

/** Longer than any run of backticks in the text. */
function fenceFor(text: string, least: number): string {
  const longest = Math.max(0, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length));
  return "`".repeat(Math.max(least, longest + 1));
}

// oxlint-disable-next-line no-control-regex -- it must match control characters
const unprintable = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u200B-\u200F\u2028-\u202E\u2066-\u2069\uFEFF]/g;

const printable = (text: string): string => text.replaceAll(unprintable, "");

/** In a line. */
export function code(text: string): string {
  const line = printable(text.replaceAll(/\s+/g, " ")).trim();
  if (line === "") return "` `";
  const fence = fenceFor(line, 1);
  const space = /^`|`$/.test(line) ? " " : "";
  return `${fence}${space}${line}${space}${fence}`;
}

export function codeBlock(text: string): string {
  const lines = printable(text.replaceAll("\r\n", "\n")).trimEnd();
  const fence = fenceFor(lines, 3);
  return `${fence}text\n${lines}\n${fence}`;
}

/** A URL cannot end a link early. */
export const link = (text: string, url: string): string =>
  `[${text}](${url.replaceAll(/[()<>\s]/g, (character) => encodeURIComponent(character).replace("(", "%28").replace(")", "%29"))})`;
