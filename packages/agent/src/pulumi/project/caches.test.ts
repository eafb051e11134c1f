import { expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLog } from "../../system/log.ts";
import { Redactor } from "../../system/redact.ts";
import { temporaryFolder } from "../../testing/folders.ts";
import { Caches } from "./caches.ts";

function scene() {
  const root = temporaryFolder();
  const lines: string[] = [];
  const log = createLog(new Redactor(), (line) => void lines.push(line));
  const volume = join(root, "volume");
  const folder = join(volume, "restricted");
  const caches = new Caches({ folder, plugins: join(folder, "plugins"), log });
  const home = join(root, "home");
  mkdirSync(home);
  return { caches, volume, folder, home, lines };
}

const variablesIn = (folder: string) => ({ npm_config_cache: join(folder, "npm"), GOCACHE: join(folder, "go-build") });

test("folders that can be written to are used", async () => {
  const { caches, folder, home, lines } = scene();
  const env = { PULUMI_HOME: home, ...variablesIn(folder) };
  expect(await caches.usable(env)).toEqual(env);
  expect(readlinkSync(join(home, "plugins"))).toBe(join(folder, "plugins"));
  expect(lines).toEqual([]);
});

test("nothing changes without caches", async () => {
  const { home, lines } = scene();
  const log = createLog(new Redactor(), (line) => void lines.push(line));
  const env = { PULUMI_HOME: home, npm_config_cache: "/nowhere" };
  expect(await new Caches({ folder: undefined, plugins: undefined, log }).usable(env)).toEqual(env);
  expect(existsSync(join(home, "plugins"))).toBe(false);
});

test("a volume that cannot be used is reported once, and every command runs without it", async () => {
  const { caches, volume, folder, home, lines } = scene();
  // Nothing can be created in it, not even by root.
  writeFileSync(volume, "");
  const own = { PULUMI_HOME: home, PIP_CACHE_DIR: "/mine", PATH: "/bin" };
  for (let command = 0; command < 3; command++) {
    expect(await caches.usable({ ...own, ...variablesIn(folder) })).toEqual(own);
  }
  expect(lines).toHaveLength(3);
  expect(lines.join("")).toContain('"level":"warn"');
  for (const name of ["plugins", "npm", "go-build"]) expect(lines.join("")).toContain(join(folder, name));
  expect(existsSync(join(home, "plugins"))).toBe(false);
});

test("a volume that can be used later is not: plugins must not be replaced while a command uses them", async () => {
  const { caches, volume, folder, home } = scene();
  writeFileSync(volume, "");
  mkdirSync(join(home, "plugins"));
  await caches.usable({ PULUMI_HOME: home });
  rmSync(volume);
  expect(await caches.usable({ PULUMI_HOME: home, ...variablesIn(folder) })).toEqual({
    PULUMI_HOME: home,
    ...variablesIn(folder),
  });
  expect(() => readlinkSync(join(home, "plugins"))).toThrow("EINVAL");
});

/** The owner of a new volume is root, and root may write anywhere. */
test.if(process.getuid?.() === 0)("folders of root are not used by another user", async () => {
  const { caches, folder, home, lines } = scene();
  chmodSync(join(home, ".."), 0o755);
  chmodSync(home, 0o777);
  for (const name of ["plugins", "npm", "go-build"]) mkdirSync(join(folder, name), { recursive: true });
  chmodSync(join(folder, "npm"), 0o777);
  process.seteuid?.(1000);
  try {
    const { npm_config_cache } = variablesIn(folder);
    const env = { PULUMI_HOME: home, ...variablesIn(folder) };
    expect(await caches.usable(env)).toEqual({ PULUMI_HOME: home, npm_config_cache });
  } finally {
    process.seteuid?.(0);
  }
  expect(lines).toHaveLength(2);
  expect(existsSync(join(home, "plugins"))).toBe(false);
});
