import { expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
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

const failureOf = async (linked: Promise<void>): Promise<unknown> => await linked.catch((error: unknown) => error);

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

test("a cache that cannot be used leaves the plugins of the image", async () => {
  const home = homeWith("resource-a-v1");
  const file = join(temporaryFolder(), "file");
  writeFileSync(file, "");
  expect(await failureOf(linkPluginCache(home, join(file, "plugins")))).toMatchObject({ code: "ENOTDIR" });
  expect(readdirSync(join(home, "plugins"))).toEqual(["resource-a-v1"]);
});

test("a home that outlives the pod has no link to a cache that cannot be used any longer", async () => {
  const [home, volume] = [temporaryFolder(), join(temporaryFolder(), "volume")];
  await linkPluginCache(home, join(volume, "plugins"));
  rmSync(volume, { recursive: true });
  writeFileSync(volume, "");
  expect(await failureOf(linkPluginCache(home, join(volume, "plugins")))).toMatchObject({ code: "ENOTDIR" });
  expect(readdirSync(home)).toEqual([]);
  symlinkSync("/elsewhere", join(home, "plugins"));
  expect(await failureOf(linkPluginCache(home, join(volume, "plugins")))).toMatchObject({ code: "ENOTDIR" });
  expect(readlinkSync(join(home, "plugins"))).toBe("/elsewhere");
});
