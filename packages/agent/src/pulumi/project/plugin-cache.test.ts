import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, readdirSync, readlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../../testing/folders.ts";
import { linkPluginCache } from "./plugin-cache.ts";

function homeWith(...plugins: readonly string[]): string {
  const home = temporaryFolder();
  for (const name of plugins) {
    mkdirSync(join(home, "plugins", name), { recursive: true });
    writeFileSync(join(home, "plugins", name, "binary"), `of ${home}`);
  }
  return home;
}

test("the CLI's folder of plugins is the cache, and the rest of its home stays", async () => {
  const [home, cache] = [homeWith(), join(temporaryFolder(), "plugins")];
  writeFileSync(join(home, "credentials.json"), "{}");
  await linkPluginCache(home, cache);
  expect(readlinkSync(join(home, "plugins"))).toBe(cache);
  expect(existsSync(join(home, "credentials.json"))).toBe(true);
});

test("plugins of the image are copied to the cache, and those that it has already stay", async () => {
  const cache = temporaryFolder();
  const [first, second] = [homeWith("resource-a-v1"), homeWith("resource-a-v1", "resource-b-v1")];
  await linkPluginCache(first, cache);
  await linkPluginCache(second, cache);
  expect(readdirSync(cache).toSorted()).toEqual(["resource-a-v1", "resource-b-v1"]);
  expect(readFileSync(join(cache, "resource-a-v1", "binary"), "utf8")).toBe(`of ${first}`);
});

test("pods that start at the same time all use it, and a restarted agent keeps it", async () => {
  const cache = temporaryFolder();
  const homes = Array.from({ length: 8 }, () => homeWith("resource-a-v1"));
  await Promise.all(homes.map((home) => linkPluginCache(home, cache)));
  await Promise.all(homes.map((home) => linkPluginCache(home, cache)));
  expect(readdirSync(cache)).toEqual(["resource-a-v1"]);
  expect(new Set(homes.map((home) => readlinkSync(join(home, "plugins"))))).toEqual(new Set([cache]));
});

test("copies that a pod did not finish are deleted after a day", async () => {
  const cache = temporaryFolder();
  for (const name of [".copy-old", ".copy-new", "resource-a-v1"]) mkdirSync(join(cache, name));
  const old = new Date(Date.now() - 25 * 60 * 60_000);
  for (const name of [".copy-old", "resource-a-v1"]) utimesSync(join(cache, name), old, old);
  await linkPluginCache(homeWith(), cache);
  expect(readdirSync(cache).toSorted()).toEqual([".copy-new", "resource-a-v1"]);
});
