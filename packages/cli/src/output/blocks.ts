/** What a command shows, as data. render.ts turns it into text for a terminal of some width, with or without color. */

/** How a piece of text is meant; style.ts has the colors. */
export type Tone = "good" | "bad" | "warning" | "muted" | "strong" | "plain";

export interface Span {
  readonly text: string;
  readonly tone: Tone;
}

export type Text = string | Span;

export interface Column {
  readonly title: string;
  /** Wraps in the space that the other columns leave. At most one column; if there is little space, it gets its own lines. */
  readonly wraps?: boolean;
}

export type Block =
  /** A paragraph, wrapped. */
  | { readonly kind: "text"; readonly text: Text }
  | { readonly kind: "heading"; readonly text: string }
  /** Several pieces in one line, wrapped like a paragraph. Empty ones are left out. */
  | { readonly kind: "line"; readonly parts: readonly Text[] }
  /** Labels and values in two columns. */
  | { readonly kind: "fields"; readonly fields: readonly Field[] }
  | { readonly kind: "table"; readonly columns: readonly Column[]; readonly rows: readonly (readonly Text[])[] }
  | { readonly kind: "list"; readonly items: readonly Text[] }
  /** Printed as it is, so that it can be copied: commands, and the output of other programs. */
  | { readonly kind: "verbatim"; readonly text: string }
  | { readonly kind: "blank" };

export type Field = readonly [label: string, value: Text];

export const text = (value: Text): Block => ({ kind: "text", text: value });
export const heading = (value: string): Block => ({ kind: "heading", text: value });
export const fields = (list: readonly Field[]): Block => ({ kind: "fields", fields: list });
export const list = (items: readonly Text[]): Block => ({ kind: "list", items });
export const verbatim = (value: string): Block => ({ kind: "verbatim", text: value });
export const blank: Block = { kind: "blank" };

export const toned = (tone: Tone, value: string): Span => ({ text: value, tone });
export const plainText = (value: Text): string => (typeof value === "string" ? value : value.text);

/** A heading and its blocks; nothing if there are none. */
export function section(title: string, blocks: readonly Block[]): Block[] {
  return blocks.length === 0 ? [] : [blank, heading(title), ...blocks];
}
