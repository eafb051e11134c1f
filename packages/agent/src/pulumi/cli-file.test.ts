import { describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, mkdirSync, renameSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../testing/folders.ts";
import { identifyCli } from "./cli-file.ts";

const written = new Date("2030-01-01T00:00:00Z");

/** A folder with an executable, as a layer of an image has it. */
function image(name = "pulumi"): string {
  const folder = temporaryFolder();
  copyFileSync("/bin/true", join(folder, name));
  utimesSync(join(folder, name), written, written);
  return folder;
}

describe("the executable of the CLI", () => {
  test("has one identity, however it is found", async () => {
    const folder = image();
    const identity = await identifyCli("pulumi", `/nowhere::${folder}`);
    expect(identity).toBeString();
    expect(await identifyCli(join(folder, "pulumi"))).toBe(identity);
    const links = temporaryFolder();
    symlinkSync(join(folder, "pulumi"), join(links, "link"));
    expect(await identifyCli(join(links, "link"))).toBe(identity);
  });

  const changes: Record<string, (file: string) => void> = {
    "another time": (file) => utimesSync(file, written, new Date("2030-01-02T00:00:00Z")),
    "another size": (file) => {
      writeFileSync(file, "more", { flag: "a" });
      utimesSync(file, written, written);
    },
  };
  for (const [what, change] of Object.entries(changes)) {
    test(`has another identity with ${what}`, async () => {
      const folder = image();
      const before = await identifyCli("pulumi", folder);
      change(join(folder, "pulumi"));
      const after = await identifyCli("pulumi", folder);
      expect(after).toBeString();
      expect(after).not.toBe(before);
    });
  }

  test("is the first one on the path that can be executed", async () => {
    const [first, second] = [image(), image()];
    chmodSync(join(first, "pulumi"), 0o644);
    expect(await identifyCli("pulumi", `${first}:${second}`)).toBe(await identifyCli("pulumi", second));
  });

  const unknown: Record<string, () => string> = {
    "it is missing": () => temporaryFolder(),
    "it is a script": () => {
      const folder = temporaryFolder();
      writeFileSync(join(folder, "pulumi"), "#!/bin/sh\nexec other\n", { mode: 0o755 });
      return folder;
    },
    "it is a launcher of several tools": () => {
      const folder = image("launcher");
      symlinkSync(join(folder, "launcher"), join(folder, "pulumi"));
      return folder;
    },
    "it is a folder": () => {
      const folder = image("file");
      mkdirSync(join(folder, "pulumi"));
      renameSync(join(folder, "file"), join(folder, "pulumi", "file"));
      return folder;
    },
  };
  for (const [why, folder] of Object.entries(unknown)) {
    test(`has no identity if ${why}`, async () => expect(await identifyCli("pulumi", folder())).toBeUndefined());
  }
});
