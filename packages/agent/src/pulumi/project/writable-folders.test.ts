import { expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../../testing/folders.ts";
import { pulumiHome, withWritableFolders } from "./writable-folders.ts";

const root = temporaryFolder();
const state = join(root, "state");
const own = join(state, "home/.pulumi");
const home = join(root, "home");
mkdirSync(home);
/** Nothing can be created in it, not even by root. */
const readOnly = join(root, "file");
writeFileSync(readOnly, "");

const cases: Readonly<Record<string, readonly [env: Record<string, string>, folder: string]>> = {
  "in the user's home": [{ HOME: home }, join(home, ".pulumi")],
  "the image's": [{ HOME: home, PULUMI_HOME: join(root, "image") }, join(root, "image")],
  "the image's, even if the user has no home": [
    { HOME: readOnly, PULUMI_HOME: join(root, "image") },
    join(root, "image"),
  ],
  "on the volume if the user has no home": [{ HOME: join(root, "missing") }, own],
  "on the volume if the image's is not writable": [{ HOME: home, PULUMI_HOME: join(readOnly, "x") }, own],
};

for (const [name, [env, folder]] of Object.entries(cases)) {
  test(`the CLI's folder is ${name}`, () => {
    expect(pulumiHome(withWritableFolders(env, state))).toBe(folder);
    expect(existsSync(folder)).toBe(true);
  });
}

test("variables of writable folders do not change, so that shells use the same folders", () => {
  for (const env of [
    { HOME: home, TMPDIR: root },
    { HOME: home, TMPDIR: root, PULUMI_HOME: join(root, "image") },
  ]) {
    expect(withWritableFolders(env, state)).toEqual(env);
  }
});

test("a home that does not exist is not created", () => {
  withWritableFolders({ HOME: join(root, "missing") }, state);
  expect(existsSync(join(root, "missing"))).toBe(false);
});
