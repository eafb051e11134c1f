import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../testing/folders.ts";
import { linkTarget, placeLink } from "./links.ts";

const root = temporaryFolder();

test("a link replaces an empty folder, a file and another link, or is created", async () => {
  mkdirSync(join(root, "empty"));
  writeFileSync(join(root, "file"), "x");
  for (const name of ["new", "empty", "file"]) {
    expect(await placeLink(join(root, name), "/one")).toBe(true);
    expect(await placeLink(join(root, name), "/two")).toBe(true);
    expect(readlinkSync(join(root, name))).toBe("/two");
  }
});

test("a folder with content is left alone", async () => {
  mkdirSync(join(root, "full"));
  writeFileSync(join(root, "full/file"), "mine");
  expect(await placeLink(join(root, "full"), "/one")).toBe(false);
  expect(readFileSync(join(root, "full/file"), "utf8")).toBe("mine");
  expect(await linkTarget(join(root, "full"))).toBeUndefined();
});
