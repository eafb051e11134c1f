/** Every Markdown page of the repository, parsed into its headings, links, code blocks and code spans. */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

export const root = join(import.meta.dir, "../..");

interface Block {
  readonly language: string;
  readonly text: string;
}

export interface Page {
  /** Relative to the root of the repository. */
  readonly path: string;
  readonly anchors: ReadonlySet<string>;
  readonly links: readonly string[];
  readonly blocks: readonly Block[];
  /** The texts in single backticks. */
  readonly spans: readonly string[];
}

const ignored = new Set(["node_modules", ".git", ".build", ".cluster"]);

/** The files below a directory, relative to the root of the repository, without dependencies and build results. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => !ignored.has(name))
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
  // Each callback returns its text to the enclosing element. Only headings need it, for their anchors.
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
