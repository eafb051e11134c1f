/** The links, paths and code blocks on the pages are valid. */
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

import { describe, expect, test } from "bun:test";

import { files, pages, root, type Page } from "./pages.ts";

const byPath = new Map(pages.map((page) => [page.path, page]));

describe("relative links have a target", () => {
  for (const page of pages)
    test(page.path, () => expect(page.links.flatMap((link) => brokenLink(page, link))).toEqual([]));
});

function brokenLink(page: Page, link: string): string[] {
  if (/^(https?|mailto):/.test(link)) return [];
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? page.path : join(dirname(page.path), decodeURI(path));
  if (!existsSync(join(root, target))) return [`${link}: ${target} does not exist`];
  if (anchor === undefined || byPath.get(target)?.anchors.has(anchor)) return [];
  return [`${link}: ${target} has no such heading`];
}

test("every page in docs and examples is reachable from docs/README.md", () => {
  const reachable = new Set<string>();
  const walk = (path: string): void => {
    if (reachable.has(path)) return;
    reachable.add(path);
    for (const link of byPath.get(path)?.links ?? []) {
      const target = link.startsWith("#") ? path : join(dirname(path), link.split("#")[0] ?? "");
      // A link to a directory leads to all pages in it.
      for (const other of byPath.keys()) if (other === target || other.startsWith(`${target}/`)) walk(other);
    }
  };
  walk("docs/README.md");
  const unreachable = pages
    .map(({ path }) => path)
    .filter((path) => /^(docs|examples)\//.test(path) && !reachable.has(path));
  expect(unreachable).toEqual([]);
});

describe("a page shows the program of its example", () => {
  for (const name of ["install-from-pulumi", "stack-from-pulumi"]) {
    test(name, () => {
      const program = readFileSync(join(root, "examples", name, "typescript/index.ts"), "utf8");
      expect(byPath.get(`docs/${name}.md`)?.blocks.map(({ text }) => text.trim())).toContain(program.trim());
    });
  }
});

/** The top-level directories: a code span that starts with one of them is a path. */
const topDirectories = [
  ...new Set(files.filter((path) => path.includes("/")).map((path) => path.split("/", 1)[0] ?? "")),
];
const isPath = (span: string): boolean =>
  topDirectories.some((directory) => span.startsWith(`${directory}/`)) && !/[\s<>{}…]/.test(span);

describe("paths in backticks exist", () => {
  for (const { path, spans } of pages) {
    test(path, () => expect(spans.filter((span) => isPath(span) && !exists(span))).toEqual([]));
  }
});

function exists(span: string): boolean {
  if (existsSync(join(root, span))) return true;
  return span.includes("*") && files.some((path) => new Bun.Glob(span).match(path));
}

test("the files that ARCHITECTURE.md names exist", () => {
  const known = new Set(files.flatMap((path) => [path, basename(path)]));
  const named = byPath.get("ARCHITECTURE.md")?.spans.filter((span) => /^[\w./-]+\.ts$/.test(span)) ?? [];
  const inOperator = (name: string): string => `packages/operator/src/${name}`;
  // The walk names `rules/due.ts` where the controller is clear from the sentence.
  const isKnown = (name: string): boolean =>
    known.has(name) || known.has(inOperator(name)) || known.has(inOperator(`stack/${name}`));
  expect(named.length).toBeGreaterThan(50);
  expect(named.filter((name) => !isKnown(name))).toEqual([]);
});

describe("ARCHITECTURE.md lists the imports of", () => {
  const page = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
  for (const [, folder = "", documented = ""] of page.matchAll(
    /^\| `((?:packages|hack)\/[^`]+)` +\|.*\| ([a-z, ]+?) +\|$/gm,
  )) {
    test(folder, () => {
      const sources = files.filter((path) => path.startsWith(`${folder}/`) && /(?<!\.test)\.ts$/.test(path));
      const text = sources.map((path) => readFileSync(join(root, path), "utf8")).join("\n");
      const imports = text.matchAll(/(?:from |import |import\()"@pko\/([a-z]+)/g);
      const names = [...new Set(Array.from(imports, ([, name = ""]) => name))].toSorted();
      expect(names.join(", ") || "nothing").toBe(documented);
    });
  }
});

/** `sh` and `yaml` blocks are checked in test/integration/docs. */
const languages = new Set(["sh", "yaml", "mermaid", "ts", "json", "text"]);

describe("code blocks have a known language", () => {
  for (const { path, blocks } of pages) {
    test(path, () => expect(blocks.filter(({ language }) => !languages.has(language))).toEqual([]));
  }
});

describe("decision records start with their status and date", () => {
  for (const { path } of pages.filter(({ path }) => path.startsWith("docs/adr/"))) {
    test(path, () => {
      const text = readFileSync(join(root, path), "utf8");
      expect(text).toMatch(/^# \d+\. .+\n\n- Status: (accepted|superseded by .+)\n- Date: \d{4}-\d{2}-\d{2}\n/);
    });
  }
});
