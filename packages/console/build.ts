/** Bundles the page of the console. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

export interface Asset {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly contentType: string;
  /** Of the bytes, for the name of the file and the ETag. */
  readonly hash: string;
}

/** By path: `/index.html`, and `/assets/NAME` with a name that changes with its content. */
export type Assets = ReadonlyMap<string, Asset>;

const web = join(import.meta.dir, "src/web");

const contentTypes: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
};

export async function buildConsole(): Promise<Assets> {
  const result = await Bun.build({
    entrypoints: [join(web, "main.tsx")],
    target: "browser",
    minify: true,
    naming: "[name].[ext]",
    define: { "process.env.NODE_ENV": '"production"' },
  });
  if (!result.success) throw new AggregateError(result.logs, "the page of the console cannot be bundled");
  const assets = new Map<string, Asset>();
  const paths = new Map<string, string>();
  for (const output of result.outputs) {
    const extension = output.path.endsWith(".css") ? "css" : "js";
    const asset = assetOf(new Uint8Array(await output.arrayBuffer()), extension);
    const path = `/assets/console-${asset.hash}.${extension}`;
    assets.set(path, asset);
    paths.set(extension, path);
  }
  const template = await readFile(join(web, "index.html"), "utf8");
  const html = template.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => paths.get(name) ?? "");
  assets.set("/index.html", assetOf(new TextEncoder().encode(html), "html"));
  return assets;
}

function assetOf(bytes: Uint8Array<ArrayBuffer>, extension: string): Asset {
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  return { bytes, contentType: contentTypes[extension] ?? "application/octet-stream", hash };
}
