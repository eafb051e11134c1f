/** Every Markdown page of the repository, taken apart: what it links to, what it calls by its path, what it tells to type. */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

export const root = join(import.meta.dir, "../..");

interface Block {
  readonly language: string;
  readonly text: string;
}

export interface Page {
  /** From the repository's root. */
  readonly path: string;
  readonly anchors: ReadonlySet<string>;
  readonly links: readonly string[];
  readonly blocks: readonly Block[];
  /** What stands between single backticks. */
  readonly spans: readonly string[];
}

const passedOver = new Set(["node_modules", ".git", ".build", ".cluster"]);

/** The files below a folder, from the repository's root, but for those that are not of this repository. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !passedOver.has(name))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? filesBelow(path) : [relative(root, path)];
    })
    .toSorted();
}

export const files: readonly string[] = filesBelow(root);

export const pages: readonly Page[] = files
  .filter((path) => path.endsWith(".md"))
  .map((path) => parsePage(path, readFileSync(join(root, path), "utf8")));

function parsePage(path: string, markdown: string): Page {
  const anchors = new Set<string>();
  const links: string[] = [];
  const blocks: Block[] = [];
  const spans: string[] = [];
  // What they return is the text that the parts around them see; only headings look at it, for their anchors.
  const parts: Bun.markdown.RenderCallbacks = {
    heading(text, { id }) {
      anchors.add(id ?? "");
      return text;
    },
    link(text, { href }) {
      links.push(href);
      return text;
    },
    image(text, { src }) {
      links.push(src);
      return text;
    },
    code(text, meta) {
      blocks.push({ language: meta?.language ?? "", text });
      return text;
    },
    codespan(text) {
      spans.push(text);
      return text;
    },
  };
  Bun.markdown.render(markdown, parts, { headings: { ids: true } });
  return { path, anchors, links, blocks, spans };
}
