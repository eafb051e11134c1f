/** What the pages say of each other and of the repository is so. */
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

import { describe, expect, test } from "bun:test";

import { files, pages, root, type Page } from "./pages.ts";

const byPath = new Map(pages.map((page) => [page.path, page]));

describe("every relative link leads somewhere", () => {
  for (const page of pages)
    test(page.path, () => expect(page.links.flatMap((link) => brokenLink(page, link))).toEqual([]));
});

function brokenLink(page: Page, link: string): string[] {
  if (/^(https?|mailto):/.test(link)) return [];
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? page.path : join(dirname(page.path), decodeURI(path));
  if (!existsSync(join(root, target))) return [`${link}: there is no ${target}`];
  if (anchor === undefined || byPath.get(target)?.anchors.has(anchor)) return [];
  return [`${link}: ${target} has no heading of that name`];
}

test("every page of docs/ is reached from its index", () => {
  const reached = new Set<string>();
  const walk = (path: string): void => {
    if (reached.has(path)) return;
    reached.add(path);
    for (const link of byPath.get(path)?.links ?? []) {
      const target = link.startsWith("#") ? path : join(dirname(path), link.split("#")[0] ?? "");
      // A folder shows its pages.
      for (const other of byPath.keys()) if (other === target || other.startsWith(`${target}/`)) walk(other);
    }
  };
  walk("docs/README.md");
  const missed = pages.map(({ path }) => path).filter((path) => /^(docs|examples)\//.test(path) && !reached.has(path));
  expect(missed).toEqual([]);
});

/** The folders of the repository: what begins with one of them, between backticks, is a path. */
const top = [...new Set(files.filter((path) => path.includes("/")).map((path) => path.split("/", 1)[0] ?? ""))];
const isPath = (span: string): boolean =>
  top.some((folder) => span.startsWith(`${folder}/`)) && !/[\s<>{}…]/.test(span);

describe("every path between backticks is there", () => {
  for (const { path, spans } of pages) {
    test(path, () => expect(spans.filter((span) => isPath(span) && !isThere(span))).toEqual([]));
  }
});

function isThere(span: string): boolean {
  if (existsSync(join(root, span))) return true;
  return span.includes("*") && files.some((path) => new Bun.Glob(span).match(path));
}

test("every file that ARCHITECTURE.md names is there", () => {
  const names = new Set(files.map((path) => basename(path)));
  const named = byPath.get("ARCHITECTURE.md")?.spans.filter((span) => /^[\w.-]+\.[a-z]+$/.test(span)) ?? [];
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((name) => !names.has(name))).toEqual([]);
});

describe("ARCHITECTURE.md knows what imports what", () => {
  const page = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
  for (const [, folder = "", told = ""] of page.matchAll(/^\| `([^`]+)` +\|.*\| ([a-z, ]+?) +\|$/gm)) {
    test(folder, () => {
      const sources = files.filter((path) => path.startsWith(`${folder}/`) && /(?<!\.test)\.ts$/.test(path));
      const text = sources.map((path) => readFileSync(join(root, path), "utf8")).join("\n");
      const imports = text.matchAll(/(?:from|import) "@pko\/([a-z]+)/g);
      const names = [...new Set(Array.from(imports, ([, name = ""]) => name))].toSorted();
      expect(names.join(", ") || "nothing").toBe(told);
    });
  }
});

/** Each is checked somewhere: here, or in test/integration/docs. The others are only shown. */
const languages = new Set(["sh", "yaml", "mermaid", "ts", "json", "text"]);

describe("every block says what language it is in", () => {
  for (const { path, blocks } of pages) {
    test(path, () => expect(blocks.filter(({ language }) => !languages.has(language))).toEqual([]));
  }
});
