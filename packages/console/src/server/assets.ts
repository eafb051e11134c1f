/** The files of the page. */
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

import type { Asset, Assets } from "../../build.ts";
import { acceptsGzip, respond } from "./responses.ts";

/** Where an executable has the page, beside its modules. */
export const embeddedFolder = "console-page";

const contentTypes: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  ico: "image/x-icon",
  js: "text/javascript; charset=utf-8",
  json: "application/json",
  png: "image/png",
  svg: "image/svg+xml",
  woff2: "font/woff2",
};

/** From the executable; when the console runs from source, they are built first. */
export async function loadAssets(): Promise<Assets> {
  const folder = join(import.meta.dir, embeddedFolder);
  if (!existsSync(join(folder, "index.html"))) {
    // Not a literal: the executable must not contain the bundler's settings.
    const source = join(import.meta.dir, "../../build.ts");
    const { buildConsole } = (await import(source)) as { buildConsole: () => Promise<Assets> };
    return await buildConsole();
  }
  const names = (await readdir(folder, { recursive: true })).filter((name) => /\.\w+$/.test(name));
  return new Map(await Promise.all(names.map(async (name) => [`/${name}`, await readAsset(folder, name)] as const)));
}

async function readAsset(folder: string, name: string): Promise<Asset> {
  const bytes = new Uint8Array(await readFile(join(folder, name)));
  const contentType = contentTypes[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream";
  return { bytes, contentType, hash: new Bun.CryptoHasher("sha256").update(bytes).digest("hex").slice(0, 16) };
}

export interface AssetServer {
  /** Undefined if there is no such file. */
  file(path: string, headers: Headers): Response | undefined;
  page(headers: Headers): Response;
}

const isText = ({ contentType }: Asset): boolean => /^text\/|json|svg/.test(contentType);

export function assetServer(assets: Assets): AssetServer {
  const compressed = new Map<string, Uint8Array<ArrayBuffer>>();
  const serve = (path: string, headers: Headers, cacheControl: string): Response | undefined => {
    const asset = assets.get(path);
    if (!asset) return undefined;
    const etag = `"${asset.hash}"`;
    const common = { etag, vary: "accept-encoding", "cache-control": cacheControl };
    if (headers.get("if-none-match") === etag) return respond(null, { status: 304, headers: common });
    const { contentType } = asset;
    if (!isText(asset) || !acceptsGzip(headers)) {
      return respond(asset.bytes, { contentType, headers: common });
    }
    const bytes = compressed.get(path) ?? Bun.gzipSync(asset.bytes, { level: 9 });
    compressed.set(path, bytes);
    return respond(bytes, { contentType, headers: { ...common, "content-encoding": "gzip" } });
  };
  return {
    file: (path, headers) =>
      path.startsWith("/assets/") ? serve(path, headers, "public, max-age=31536000, immutable") : undefined,
    // The page names the current files: a browser that keeps it would request those of an older version.
    page: (headers) => serve("/index.html", headers, "no-cache") ?? respond("", { status: 404 }),
  };
}
