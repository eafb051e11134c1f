import { expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { readPack, type ObjectFormat } from "./pack.ts";

/** A pack of two commits, with deltas, made by git. */
function packOf(format: ObjectFormat): { readonly pack: Buffer; readonly trees: readonly string[] } {
  const folder = mkdtempSync(join(tmpdir(), "pack-"));
  const git = (args: readonly string[], input = ""): Buffer =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], { cwd: folder, input });
  try {
    git(["init", "--quiet", `--object-format=${format}`]);
    for (let file = 0; file < 200; file++) writeFileSync(join(folder, `file-${file}`), String(file));
    git(["add", "."]);
    git(["commit", "--quiet", "-m", "one"]);
    writeFileSync(join(folder, "file-7"), "changed");
    git(["commit", "--quiet", "-a", "-m", "two"]);
    const pack = git(["pack-objects", "--stdout", "--revs", "--quiet"], "HEAD\n");
    const trees = ["HEAD^{tree}", "HEAD~1^{tree}"].map((name) => git(["rev-parse", name]).toString().trim());
    return { pack, trees };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.each(["sha1", "sha256"] as const)("the objects of a pack with deltas are found by their %s IDs", (format) => {
  const { pack, trees } = packOf(format);
  const objects = readPack(pack, format);
  expect(trees.map((id) => objects.get(id)?.type)).toEqual(["tree", "tree"]);
  expect(objects.size).toBe(2 + 2 + 201);
});

test("a pack that is cut off or damaged is rejected, or its objects have other IDs", () => {
  const { pack, trees } = packOf("sha1");
  const whole = readPack(pack, "sha1");
  for (let at = 0; at < pack.length; at += 97) {
    const damaged = Buffer.from(pack);
    damaged[at] = (damaged[at] ?? 0) ^ 0x55;
    for (const bad of [pack.subarray(0, at), damaged]) {
      try {
        const objects = readPack(bad, "sha1");
        for (const id of trees) {
          const object = objects.get(id);
          if (object) expect(object.content.equals(whole.get(id)?.content ?? Buffer.alloc(0))).toBe(true);
        }
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
      }
    }
  }
});
