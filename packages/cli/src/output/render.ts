/** Blocks as text for a terminal. */
import { plainText, type Block, type Field, type Text } from "./blocks.ts";
import { withColor, withoutColor, type Paint } from "./style.ts";
import { renderTable } from "./table.ts";
import { padEnd, printable, width, wrap } from "./wrap.ts";

export interface Display {
  /** In characters. */
  readonly width: number;
  readonly color: boolean;
}

export function render(blocks: readonly Block[], display: Display): string {
  const paint = display.color ? withColor : withoutColor;
  const lines = blocks.flatMap((block) => renderBlock(block, display.width, paint));
  return lines.map((line) => `${line}\n`).join("");
}

function renderBlock(block: Block, limit: number, paint: Paint): string[] {
  switch (block.kind) {
    case "text":
      return painted(block.text, limit, paint);
    case "heading":
      return [paint("strong", printable(block.text))];
    case "line":
      return renderLine(block.parts, limit, paint);
    case "fields":
      return renderFields(block.fields, limit, paint);
    case "table":
      return renderTable(block, limit, paint);
    case "list":
      return block.items.flatMap((item) => hanging("- ", painted(item, limit - 2, paint)));
    case "verbatim":
      return printable(block.text)
        .replace(/\n$/, "")
        .split("\n")
        .map((line) => `  ${line}`.trimEnd());
    case "blank":
      return [""];
  }
}

function painted(value: Text, limit: number, paint: Paint): string[] {
  const tone = typeof value === "string" ? "plain" : value.tone;
  return wrap(printable(plainText(value)), limit).map((line) => paint(tone, line));
}

/** Only the first piece is painted: a wrapped line would cut the color of another one. */
function renderLine(parts: readonly Text[], limit: number, paint: Paint): string[] {
  const shown = parts.filter((part) => plainText(part) !== "");
  const [first = ""] = shown;
  const start = printable(plainText(first));
  const [line = "", ...more] = wrap(printable(shown.map(plainText).join("  ")), limit);
  const tone = typeof first === "string" ? "plain" : first.tone;
  const painted = line.startsWith(start) ? paint(tone, start) + line.slice(start.length) : line;
  return [painted, ...more.map((each) => `  ${each}`)];
}

function renderFields(list: readonly Field[], limit: number, paint: Paint): string[] {
  const labels = Math.max(0, ...list.map(([label]) => width(label))) + 3;
  return list.flatMap(([label, value]) => {
    const name = padEnd(`${label}:`, labels);
    return hanging(paint("muted", name), painted(value, limit - labels, paint), labels);
  });
}

function hanging(prefix: string, [first = "", ...more]: readonly string[], indent = width(prefix)): string[] {
  return [`${prefix}${first}`.trimEnd(), ...more.map((line) => (" ".repeat(indent) + line).trimEnd())];
}
