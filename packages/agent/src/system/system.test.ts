import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../testing/folders.ts";
import { runCommand } from "./command.ts";
import { cleanRelative, isInside, readTail, resolveInside, writeAtomically } from "./files.ts";
import { createLog } from "./log.ts";
import { identify, isAlive, sessionMembers, startOf } from "./processes.ts";
import { Redactor } from "./redact.ts";

const root = temporaryFolder();
const env = { PATH: process.env["PATH"] ?? "" };
const command = { cwd: root, env, timeoutMs: 10_000 };

describe("paths", () => {
  for (const [path, clean] of Object.entries({
    "": ".",
    ".": ".",
    "./a//b/": "a/b",
    "a/./b": "a/b",
    "..": undefined,
    "a/../b": undefined,
    "/etc": undefined,
    "a\0b": undefined,
    "...": "...",
    "..a": "..a",
  })) {
    test(JSON.stringify(path), () => expect(cleanRelative(path)).toBe(clean));
  }

  test("a folder beside another is not inside it", () => {
    expect(isInside("/a/b", "/a/bc")).toBe(false);
    expect(isInside("/a/b", "/a/b/..c")).toBe(true);
    expect(isInside("/a/b", "/a/b")).toBe(true);
    expect(isInside("/a/b", "/a")).toBe(false);
  });

  test("links are followed, and not out of the folder", async () => {
    const tree = join(root, "tree");
    mkdirSync(join(tree, "real"), { recursive: true });
    symlinkSync("real", join(tree, "inner"));
    symlinkSync("/etc", join(tree, "outer"));
    symlinkSync("../../..", join(tree, "up"));
    symlinkSync("loop", join(tree, "loop"));
    expect(await resolveInside(tree, "inner")).toEqual({ ok: true, path: join(tree, "real") });
    expect(await resolveInside(tree, "outer")).toEqual({ ok: false, problem: "outside" });
    expect(await resolveInside(tree, "outer/passwd")).toEqual({ ok: false, problem: "outside" });
    expect(await resolveInside(tree, "up")).toEqual({ ok: false, problem: "outside" });
    expect(await resolveInside(tree, "loop")).toEqual({ ok: false, problem: "missing" });
    expect(await resolveInside(tree, "nope")).toEqual({ ok: false, problem: "missing" });
  });
});

describe("files", () => {
  test("are written whole, and nothing is left beside them", async () => {
    const folder = join(root, "atomic");
    await Promise.all(Array.from({ length: 20 }, (_, index) => writeAtomically(join(folder, "f"), String(index))));
    expect(readdirSync(folder)).toEqual(["f"]);
  });

  test("are read from their end", async () => {
    writeFileSync(join(root, "tail"), "0123456789");
    expect(await readTail(join(root, "tail"), 4)).toEqual({ text: "6789", bytes: 10 });
    expect(await readTail(join(root, "nope"), 4)).toEqual({ text: "", bytes: 0 });
  });
});

describe("commands", () => {
  const sh = (script: string, more: object = {}) =>
    runCommand({ ...command, file: "/bin/sh", args: ["-c", script], ...more });

  test("answer with what they print and how they end", async () => {
    expect(await sh("cat; echo err >&2; exit 3", { input: "in" })).toEqual({
      kind: "exited",
      code: 3,
      stdout: "in",
      stderr: "err\n",
    });
  });

  test("that are not there", async () => {
    expect(await runCommand({ ...command, file: "/nonexistent", args: [] })).toEqual({ kind: "missing" });
  });

  test("that take too long are ended with all they started", async () => {
    const end = await sh("sleep 47 & setsid sleep 0.1; sleep 48", { timeoutMs: 300 });
    expect(end.kind).toBe("timedOut");
    const left = async (): Promise<unknown> => {
      const listed = await sh("ps -eo args | grep -E '^sleep 4[78]$' || true");
      return listed.kind === "exited" && listed.stdout;
    };
    // A killed process is listed until somebody has taken note of its end.
    for (let tries = 0; tries < 100 && (await left()) !== ""; tries += 1) await Bun.sleep(20);
    expect(await left()).toBe("");
  });

  test("that are given up", async () => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 100);
    expect(await sh("sleep 30", { signal: abort.signal })).toEqual({ kind: "aborted" });
    expect(await sh("true", { signal: abort.signal })).toEqual({ kind: "aborted" });
  });

  test("that print without end are kept within bounds", async () => {
    const end = await sh(
      "head -c 50000000 /dev/zero | tr '\\0' x; head -c 50000000 /dev/zero | tr '\\0' y >&2; echo end >&2",
      {
        maxOutputBytes: 100_000,
      },
    );
    expect(end.kind).toBe("exited");
    if (end.kind !== "exited") return;
    expect(end.stdout).toBe("x".repeat(100_000));
    expect(end.stderr.length).toBeLessThanOrEqual(100_000);
    expect(end.stderr.endsWith("yend\n")).toBe(true);
  });

  test("that do not read their input", async () => {
    expect(await sh("exit 0", { input: "x".repeat(1_000_000) })).toMatchObject({ kind: "exited", code: 0 });
  });
});

describe("processes", () => {
  test("are told apart by when they began", () => {
    const own = identify(process.pid);
    expect(own && isAlive(own)).toBe(true);
    expect(own && isAlive({ ...own, startTicks: "1" })).toBe(false);
    expect(identify(4_194_303)).toBeUndefined();
    expect(Math.abs((startOf(process.pid)?.getTime() ?? 0) - (Date.now() - process.uptime() * 1000))).toBeLessThan(
      5_000,
    );
    expect(sessionMembers(4_194_303)).toEqual([]);
  });
});

/** A first process of its own, as in a container: runs commands that leave others behind, and tells of what is left. */
const firstProcess = `
  import { runCommand } from "${join(import.meta.dir, "command.ts")}";
  import { seeOffOrphans } from "${join(import.meta.dir, "orphans.ts")}";
  import { endedChildren } from "${join(import.meta.dir, "processes.ts")}";
  if (process.argv.includes("reaping")) seeOffOrphans(50);
  const script = "for n in 1 2 3; do setsid sh -c 'sleep 0.1' & done; exit 7";
  const command = { file: "sh", args: ["-c", script], cwd: "/", env: process.env, timeoutMs: 10_000 };
  const ends = await Promise.all(Array.from({ length: 5 }, () => runCommand(command)));
  await Bun.sleep(1_500);
  console.log(JSON.stringify({ codes: ends.map(({ code }) => code), left: endedChildren(1).length }));
`;

describe("what others leave behind", () => {
  const isRoot = process.getuid?.() === 0;
  for (const [mode, left] of [
    ["reaping", 0],
    ["idle", 15],
  ] as const) {
    test.if(isRoot)(
      `is seen off by the first process that does so: ${mode}`,
      async () => {
        const script = join(root, `${mode}.ts`);
        writeFileSync(script, firstProcess);
        const args = ["--pid", "--fork", "--mount", "--mount-proc", "--kill-child", process.execPath, script, mode];
        const end = await runCommand({ ...command, file: "unshare", args, timeoutMs: 30_000 });
        expect(end).toMatchObject({ kind: "exited", code: 0 });
        expect(end.kind === "exited" && JSON.parse(end.stdout)).toEqual({ codes: [7, 7, 7, 7, 7], left });
      },
      40_000,
    );
  }
});

describe("secrets", () => {
  test("are masked in text and in JSON, whole and by line", () => {
    const redactor = new Redactor();
    redactor.add("canary-1", 'quo"ted-canary', "line-one-canary\nline-two-canary", undefined, "ab");
    redactor.addEnvironment({ MY_TOKEN: "canary-env", PLAIN: "visible-value", AWS_SECRET_ACCESS_KEY: "canary-aws" });
    redactor.addEnvironment({ DATABASE_URL: "canary-url", OTHER_URL: "visible-url" }, ["DATABASE_URL"]);
    const text = redactor.clean(
      `canary-1 ${JSON.stringify({ a: 'quo"ted-canary' })} line-two-canary visible-value canary-env ab canary-aws canary-url visible-url`,
    );
    expect(text).toBe(`[secret] {"a":"[secret]"} [secret] visible-value [secret] ab [secret] [secret] visible-url`);
  });

  test("forgets passing secrets in time, the oldest first", () => {
    const redactor = new Redactor();
    for (let index = 0; index < 200; index += 1) redactor.addPassing(`canary-${index}`);
    expect(redactor.clean("canary-199 canary-150")).toBe("[secret] [secret]");
    expect(redactor.clean("canary-20x")).toBe("canary-20x");
  });

  test("do not reach the log", () => {
    const redactor = new Redactor();
    redactor.add("canary-2");
    const lines: string[] = [];
    createLog(redactor, (line) => lines.push(line)).error("failed", { error: "with canary-2 in it" });
    expect(lines.join("")).not.toContain("canary-2");
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      level: "error",
      message: "failed",
      error: "with [secret] in it",
    });
  });
});
