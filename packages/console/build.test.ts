import { gzipSync } from "node:zlib";

import { beforeAll, describe, expect, test } from "bun:test";

import { buildConsole, type Assets } from "./build.ts";

let assets: Assets;
beforeAll(async () => {
  assets = await buildConsole();
});

const textOf = (path: string): string => new TextDecoder().decode(assets.get(path)?.bytes);
const pathsOf = (extension: string): string[] => [...assets.keys()].filter((path) => path.endsWith(extension));

/** In bytes, compressed. */
const maxScriptSize = 150 * 1024;

describe("the bundle", () => {
  test("has at most 150 KB of compressed JavaScript, without a schema library", () => {
    const scripts = pathsOf(".js").map(textOf);
    const size = scripts.reduce((sum, script) => sum + gzipSync(script).byteLength, 0);
    expect(size).toBeGreaterThan(10_000);
    expect(size).toBeLessThanOrEqual(maxScriptSize);
    expect(scripts.join("\n")).not.toContain("additionalProperties");
  });

  test("loads its own files and nothing else, without inline scripts and styles", () => {
    const html = textOf("/index.html");
    const [script = "", style = ""] = [pathsOf(".js")[0], pathsOf(".css")[0]];
    expect(html).toContain(`<script type="module" src="${script}"></script>`);
    expect(html).toContain(`<link rel="stylesheet" href="${style}" />`);
    expect(html).not.toMatch(/<style|style=|<script(?! type="module" src="\/assets\/)|https?:/);
    expect(textOf(style)).not.toMatch(/url\(|@import/);
  });

  test("has names that change with its content", () => {
    for (const path of [...pathsOf(".js"), ...pathsOf(".css")]) {
      expect(path).toBe(`/assets/console-${assets.get(path)?.hash ?? ""}.${path.split(".").at(-1) ?? ""}`);
    }
  });
});
