import { expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { chmodSync, linkSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { tarOf, type TarEntry } from "../../../packages/agent/src/testing/tar.ts";
import { inCage } from "./cage.ts";
import { problemOf } from "./problem.ts";
import { hold } from "./target.ts";

const problemWith = async (use: (folder: string) => void): Promise<string | undefined> =>
  await problemOf(async () => await inCage(async (folder) => use(folder)));

const escaped = "nothing outside of the folder is created, changed or deleted";

test("everything may be written into the folder", async () => {
  const use = (folder: string): void => {
    mkdirSync(join(folder, "a/b"), { recursive: true });
    writeFileSync(join(folder, "a/b/file"), "x");
    symlinkSync("../../..", join(folder, "link"));
  };
  expect(await problemWith(use)).toBeUndefined();
  expect(await problemWith(use)).toBeUndefined();
});

const outside: Record<string, (folder: string) => void> = {
  "a file beside the folder": (folder) => writeFileSync(join(folder, "../file"), "x"),
  "a file several levels above": (folder) => writeFileSync(join(folder, "../../../../file"), "x"),
  "an empty folder above": (folder) => mkdirSync(join(folder, "../../new")),
  "a changed file": (folder) => writeFileSync(join(folder, "../../present"), "another"),
  "a deleted file": (folder) => rmSync(join(folder, "../../present")),
  "another mode": (folder) => chmodSync(join(folder, "../present"), 0o777),
  "a hard link to a file": (folder) => linkSync(join(folder, "../present"), join(folder, "link")),
  "a file behind a link": (folder) => {
    symlinkSync("../../..", join(folder, "link"));
    writeFileSync(join(folder, "link/file"), "x");
  },
  "a file in the working directory": () => writeFileSync("file", "x"),
  "the folder itself": (folder) => rmSync(folder, { recursive: true }),
};

test.each(Object.entries(outside))("%s is noticed, and does not remain", async (_, use) => {
  expect(await problemWith(use)).toBe(escaped);
  expect(await problemWith(() => undefined)).toBeUndefined();
});

test("an error is reported, unless something has escaped, too", async () => {
  const fail = (): void => hold(false, "no error");
  expect(await problemWith(fail)).toBe("no error");
  expect(await problemWith((folder) => (writeFileSync(join(folder, "../file"), "x"), fail()))).toBe(escaped);
});

const archives: Record<string, readonly TarEntry[]> = {
  "a path with ..": [{ path: "../../escaped", type: "0", body: "x" }],
  "an absolute path": [{ path: "/proc/self/cwd/escaped", type: "0", body: "x" }],
  "a link and a file behind it": [
    { path: "link", type: "2", link: "../.." },
    { path: "link/escaped", type: "0", body: "x" },
  ],
  "a hard link, and a file in its place": [{ path: "file", type: "1", link: "../present" }],
};

test.each(Object.entries(archives))("a program that unpacks everything is caught with %s", async (_, entries) => {
  const unpack = (folder: string): void => {
    execFileSync("tar", ["-x", "-P", "-C", folder], { input: tarOf(entries), stdio: ["pipe", "ignore", "ignore"] });
  };
  expect(await problemWith(unpack)).toBe(escaped);
});
