import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runGit } from "./git-command.ts";

const env = { PATH: process.env["PATH"] ?? "" };

test("a command that is aborted before its start is not started", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "pko-git-"));
  try {
    const command = { git: "sh", args: ["-c", "touch started; sleep 30"], cwd, env, timeoutMs: 20_000 };
    expect(await runGit({ ...command, signal: AbortSignal.abort() })).toEqual({ kind: "late" });
    expect(existsSync(join(cwd, "started"))).toBe(false);
  } finally {
    rmSync(cwd, { recursive: true });
  }
}, 30_000);

test("a command that is aborted ends", async () => {
  const abort = new AbortController();
  const running = runGit({ git: "sleep", args: ["30"], cwd: "/", env, timeoutMs: 20_000, signal: abort.signal });
  abort.abort();
  expect((await running).kind).toBe("exited");
}, 30_000);
