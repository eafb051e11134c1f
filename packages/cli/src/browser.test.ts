import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";

import { expect, test } from "bun:test";

import { openInBrowser } from "./browser.ts";

const url = "http://pulumi-1.localhost:8001/#token=secret";

test("the browser's arguments do not have the token: a file that only this user can read has it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "browser-"));
  const [arguments_, closing] = [join(folder, "arguments"), new AbortController()];
  for (const name of ["xdg-open", "open"]) {
    writeFileSync(join(folder, name), `#!/bin/sh\necho "$@" > ${arguments_}\n`);
    chmodSync(join(folder, name), 0o755);
  }
  const env = { PATH: [folder, process.env["PATH"] ?? ""].join(delimiter), XDG_RUNTIME_DIR: folder };
  expect(await openInBrowser({ env, signal: closing.signal }, url)).toBe("opened");
  const given = readFileSync(arguments_, "utf8").trim();
  expect(given).not.toContain("secret");
  expect(readFileSync(given, "utf8")).toContain(url);
  expect([statSync(given).mode & 0o777, statSync(dirname(given)).mode & 0o777]).toEqual([0o600, 0o700]);
  closing.abort();
  rmSync(folder, { recursive: true, force: true });
});

test("without a browser, it says so", async () => {
  const env = { PATH: "/nonexistent" };
  expect(await openInBrowser({ env, signal: new AbortController().signal }, url)).toBe("failed");
});
