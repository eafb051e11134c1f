/** A part of a page that a command writes: what is between the comments `<!-- name -->` and `<!-- end of name -->`. */

export interface PagePart {
  readonly before: string;
  readonly text: string;
  readonly after: string;
}

export function partOf(page: string, name: string): PagePart {
  const [start, end] = [`<!-- ${name} -->\n`, `<!-- end of ${name} -->`];
  const [from, to] = [page.indexOf(start) + start.length, page.indexOf(end)];
  if (from < start.length || to < from) throw new Error(`the page has no part ${name}`);
  return { before: page.slice(0, from), text: page.slice(from, to), after: page.slice(to) };
}

export function replacePart(page: string, name: string, text: string): string {
  const { before, after } = partOf(page, name);
  return `${before}\n${text.trim()}\n\n${after}`;
}
