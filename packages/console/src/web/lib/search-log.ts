/** Searching in a log. Pure. */

export interface LogMatch {
  readonly line: number;
  readonly text: string;
}

/** With an empty search, all lines. */
export function searchLog(lines: readonly string[], search: string): LogMatch[] {
  const wanted = search.toLowerCase();
  return lines.flatMap((text, at) =>
    wanted === "" || text.toLowerCase().includes(wanted) ? [{ line: at + 1, text }] : [],
  );
}

export interface Piece {
  readonly text: string;
  readonly isMatch: boolean;
}

/** The line in pieces, so that matches can be marked. */
export function splitMatches(text: string, search: string): Piece[] {
  if (search === "") return [{ text, isMatch: false }];
  const [lower, wanted] = [text.toLowerCase(), search.toLowerCase()];
  const pieces: Piece[] = [];
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    if (at > from) pieces.push({ text: text.slice(from, at), isMatch: false });
    pieces.push({ text: text.slice(at, at + search.length), isMatch: true });
    from = at + search.length;
  }
  if (from < text.length) pieces.push({ text: text.slice(from), isMatch: false });
  return pieces;
}

/** Colors and cursor movements of terminals. */
// oxlint-disable-next-line no-control-regex -- these characters are what is removed
const escapes = /\u001B(?:\[[0-?]*[ -/]*[@-~]|[@-_])/g;

export const withoutEscapes = (text: string): string => text.replaceAll(escapes, "");
