import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../testing/folders.ts";
import { truncate, lastLines, lastChars, quoteName } from "./clean-text.ts";
import { cleanOutput, runCommand } from "./command.ts";
import { normalizeRelative, isInside, readTail, resolveInside, writeAtomically } from "./files.ts";
import { createLog } from "./log.ts";
import { identify, isAlive, sessionMembers } from "./processes.ts";
import { Redactor } from "./redact.ts";

const root = temporaryFolder();
const env = { PATH: process.env["PATH"] ?? "" };
const command = { cwd: root, env, timeoutMs: 60_000 };

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
    test(JSON.stringify(path), () => expect(normalizeRelative(path)).toBe(clean));
  }

  test("a folder beside another is not inside it", () => {
    expect(isInside("/a/b", "/a/bc")).toBe(false);
    expect(isInside("/a/b", "/a/b/..c")).toBe(true);
    expect(isInside("/a/b", "/a/b")).toBe(true);
    expect(isInside("/a/b", "/a")).toBe(false);
  });

  test("links are followed within the folder only", async () => {
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
  test("are written atomically, and no temporary files remain", async () => {
    const folder = join(root, "atomic");
    await Promise.all(Array.from({ length: 20 }, (_, index) => writeAtomically(join(folder, "f"), String(index))));
    expect(readdirSync(folder)).toEqual(["f"]);
  });

  test("are read from their end", async () => {
    writeFileSync(join(root, "tail"), "0123456789");
    expect(await readTail(join(root, "tail"), 4)).toEqual({ text: "6789", bytes: 10, isCutAtStart: true });
    expect(await readTail(join(root, "tail"), 10)).toEqual({ text: "0123456789", bytes: 10, isCutAtStart: false });
    expect(await readTail(join(root, "nope"), 4)).toEqual({ text: "", bytes: 0, isCutAtStart: false });
  });
});

describe("commands", () => {
  const sh = (script: string, more: object = {}) =>
    runCommand({ ...command, file: "/bin/sh", args: ["-c", script], ...more });

  test("return their output and exit code", async () => {
    expect(await sh("cat; echo err >&2; exit 3", { input: "in" })).toEqual({
      kind: "exited",
      code: 3,
      stdout: "in",
      stderr: "err\n",
    });
  });

  test("that do not exist are reported as missing", async () => {
    expect(await runCommand({ ...command, file: "/nonexistent", args: [] })).toEqual({ kind: "missing" });
  });

  test("that take too long are killed with all processes that they started", async () => {
    const end = await sh("sleep 47 & setsid sleep 0.1; sleep 48", { timeoutMs: 300 });
    expect(end.kind).toBe("timedOut");
    await expectNoneLeft("sleep 4[78]");
  });

  test("that are starting processes when they are killed leave none", async () => {
    const end = await sh("for n in $(seq 500); do sleep 46 & done; wait", { timeoutMs: 100 });
    expect(end.kind).toBe("timedOut");
    await expectNoneLeft("sleep 46");
  });

  /** A killed process is listed until its parent has reaped it. */
  async function expectNoneLeft(args: string): Promise<void> {
    const left = async (): Promise<unknown> => {
      const listed = await sh(`ps -eo args | grep -E '^${args}$' || true`);
      return listed.kind === "exited" && listed.stdout;
    };
    for (let tries = 0; tries < 100 && (await left()) !== ""; tries += 1) await Bun.sleep(20);
    expect(await left()).toBe("");
  }

  test("that are aborted", async () => {
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 100);
    expect(await sh("sleep 30", { signal: abort.signal })).toEqual({ kind: "aborted" });
    expect(await sh("true", { signal: abort.signal })).toEqual({ kind: "aborted" });
  });

  test("that print too much are truncated", async () => {
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

  test("may ignore their input", async () => {
    expect(await sh("exit 0", { input: "x".repeat(1_000_000) })).toMatchObject({ kind: "exited", code: 0 });
  });
});

describe("processes", () => {
  test("are identified by their start time", () => {
    const own = identify(process.pid);
    expect(own && isAlive(own)).toBe(true);
    expect(own && isAlive({ ...own, startTicks: "1" })).toBe(false);
    expect(identify(4_194_303)).toBeUndefined();
    expect(sessionMembers(4_194_303)).toEqual([]);
  });
});

/** A process that is PID 1, as in a container: runs commands that leave orphans, and reports the zombies. */
const pidOne = `
  import { readdirSync } from "node:fs";
  import { runCommand } from "${join(import.meta.dir, "command.ts")}";
  import { reapOrphans } from "${join(import.meta.dir, "orphans.ts")}";
  import { endedChildren } from "${join(import.meta.dir, "processes.ts")}";
  if (process.argv.includes("reaping")) reapOrphans(50);
  const script = "for n in 1 2 3; do setsid sh -c 'sleep 0.1' & done; exit 7";
  const command = { file: "sh", args: ["-c", script], cwd: "/", env: process.env, timeoutMs: 10_000 };
  const ends = await Promise.all(Array.from({ length: 5 }, () => runCommand(command)));
  const running = () => readdirSync("/proc").filter((name) => /^[2-9][0-9]*$|^1[0-9]+$/.test(name)).length - endedChildren(1).length;
  const isReaping = process.argv.includes("reaping");
  while (running() > 0 || (isReaping && endedChildren(1).length > 0)) await Bun.sleep(20);
  console.log(JSON.stringify({ codes: ends.map(({ code }) => code), left: endedChildren(1).length }));
`;

describe("orphans", () => {
  const isRoot = process.getuid?.() === 0;
  for (const [mode, left] of [
    ["reaping", 0],
    ["idle", 15],
  ] as const) {
    test.if(isRoot)(
      `leave ${left} zombies when PID 1 is ${mode}`,
      async () => {
        const script = join(root, `${mode}.ts`);
        writeFileSync(script, pidOne);
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
  test("are masked in text and in JSON, completely and line by line", () => {
    const redactor = new Redactor();
    redactor.add("canary-1", 'quo"ted-canary', "line-one-canary\nline-two-canary", undefined, "ab");
    redactor.addEnvironment({ MY_TOKEN: "canary-env", PLAIN: "visible-value", AWS_SECRET_ACCESS_KEY: "canary-aws" });
    redactor.addEnvironment({ DATABASE_URL: "canary-url", OTHER_URL: "visible-url" }, ["DATABASE_URL"]);
    const text: string = redactor.clean(
      `canary-1 ${JSON.stringify({ a: 'quo"ted-canary' })} line-two-canary visible-value canary-env ab canary-aws canary-url visible-url`,
    );
    expect(text).toBe(`[secret] {"a":"[secret]"} [secret] visible-value [secret] ab [secret] [secret] visible-url`);
  });

  test("that are short-lived are forgotten, the oldest first", () => {
    const redactor = new Redactor();
    for (let index = 0; index < 200; index += 1) redactor.addShortLived(`canary-${index}`);
    expect<string>(redactor.clean("canary-199 canary-150")).toBe("[secret] [secret]");
    expect<string>(redactor.clean("canary-20x")).toBe("canary-20x");
    expect<string>(redactor.clean(`canary-20 ${btoa("canary-20")}`)).toBe(`canary-20 ${btoa("canary-20")}`);
  });

  test("are masked in every encoding", () => {
    const redactor = new Redactor();
    const secret = "p&ss/w<rd+ (canary)=é";
    redactor.add(secret);
    const encodings = {
      literal: secret,
      "as a URL component": encodeURIComponent(secret),
      "in a form": new URLSearchParams({ secret }).toString().slice("secret=".length),
      "as JSON from Go": "p\\u0026ss/w\\u003crd+ (canary)=é",
      "with color codes": `p&ss\u001B[31m/w<rd+ (canary)=é`,
    };
    for (const [how, encoded] of Object.entries(encodings)) {
      expect<string>(redactor.clean(`${how}: ${encoded}.`)).toBe(`${how}: [secret].`);
    }
    for (const before of ["", "a", "ab", "user:"]) {
      for (const encoding of ["base64", "base64url"] as const) {
        const text = redactor.clean(Buffer.from(`${before}${secret}${before}`).toString(encoding));
        expect(text).toMatch(/^[^[]{0,9}\[secret\][^\]]{0,9}$/);
      }
    }
  });

  test("that contain color codes are masked without them", () => {
    const redactor = new Redactor();
    redactor.add("canary\u001B[0m-with-colors");
    expect<string>(redactor.clean("a canary\u001B[0m-with-colors b")).toBe("a [secret] b");
  });

  test("inside documents are recognized by their names", () => {
    const redactor = new Redactor();
    redactor.add(
      JSON.stringify({
        private_key: "-----BEGIN-----\ncanary-key\n",
        token_uri: "https://oauth2/token",
        a: [{ apiKey: ["canary-item"] }],
      }),
      "clusters:\n- cluster:\n    server: https://c\nusers:\n- user:\n    client-key-data: canary+data\n    token: canary-token",
      "[default]\naws_secret_access_key = canary/aws\nregion = us-west-2",
    );
    const printed = "canary-key, canary-item, canary+data, canary-token, canary/aws; https://oauth2/token us-west-2";
    expect<string>(redactor.clean(printed)).toBe(
      "[secret], [secret], [secret], [secret], [secret]; https://oauth2/token us-west-2",
    );
  });

  test("do not include a document's other values about them", () => {
    const redactor = new Redactor();
    redactor.add(
      '{"secretName": "frontend"}',
      "existingSecret: database\ntokenAudience: production\npasswordPolicy: required",
    );
    const printed = "frontend and database are required in production";
    expect<string>(redactor.clean(printed)).toBe(printed);
  });

  test("that are cut in two by truncation are masked", () => {
    const redactor = new Redactor();
    redactor.add("canary-of-many-words", "é-canary");
    expect<string>(redactor.clean({ text: "many-words and more", isCutAtStart: true })).toBe("[secret] and more");
    expect<string>(redactor.clean({ text: "more and canary-of-ma", isCutAtEnd: true })).toBe("more and [secret]");
    expect<string>(redactor.clean({ text: "\uFFFD-canary and", isCutAtStart: true })).toBe("[secret] and");
    expect<string>(redactor.clean({ text: "many-words" })).toBe("many-words");
    expect<string>(redactor.clean({ text: "nothing of it", isCutAtStart: true, isCutAtEnd: true })).toBe(
      "nothing of it",
    );
  });

  test("that are cut in two in a command's output are masked", async () => {
    const redactor = new Redactor();
    redactor.add("canary-of-stdout", "canary-of-stderr");
    const file = "/bin/sh";
    const script = "printf 'xxx%s' canary-of-stdout-and-more; printf '%s%s' canary-of-stderr .......... >&2";
    const end = await runCommand({ ...command, file, args: ["-c", script], maxOutputBytes: 16 });
    expect(end.kind).toBe("exited");
    if (end.kind === "exited") expect<string>(cleanOutput(end, redactor)).toBe("xxx[secret]\n[secret]..........");
  });

  test("do not reach the log", () => {
    const redactor = new Redactor();
    redactor.add("canary-2");
    const lines: string[] = [];
    createLog(redactor, (line) => lines.push(line)).error("failed", { error: "with canary-2 in it" });
    expect(lines.join("")).not.toContain("canary-2");
    redactor.add('{"key":"canary-3"}');
    createLog(redactor, (line) => lines.push(line)).error("failed", { error: JSON.stringify('{"key":"canary-3"}') });
    expect(lines.join("")).not.toContain("canary-3");
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      level: "error",
      msg: "failed",
      logger: "agent",
      error: "with [secret] in it",
    });
  });
});

describe("texts", () => {
  const clean = (text: string) => new Redactor().clean(text);

  test("are truncated between characters", () => {
    expect<string>(truncate(clean("x😀y"), 4)).toBe("x😀y");
    expect<string>(truncate(clean("x😀yz"), 4)).toBe("x😀…");
    expect<string>(truncate(clean("x😀yz"), 3)).toBe("x…");
    expect<string>(lastChars(clean("xx😀y"), 2)).toBe("y");
    expect<string>(lastChars(clean("xx😀y"), 3)).toBe("😀y");
    expect(quoteName("ab😀", 3)).toBe('"ab…"');
  });

  test("are well-formed Unicode, whatever the input", () => {
    expect<string>(clean("x\ud83d")).toBe("x\uFFFD");
    expect(quoteName("x\ud83d")).toBe('"x\uFFFD"');
  });

  test("can be reduced to their last lines", () => {
    expect<string[]>(lastLines(clean("a\n\nb  \nccccc\n"), 2, 4)).toEqual(["b", "ccc…"]);
  });
});

/** Throws uncaught errors, and shows that it is alive after the second one was logged. */
const failingProcess = `
  import { logUncaughtErrors } from "${join(import.meta.dir, "uncaught-errors.ts")}";
  import { createLog } from "${join(import.meta.dir, "log.ts")}";
  import { Redactor } from "${join(import.meta.dir, "redact.ts")}";
  let logged = 0;
  const write = (line) => {
    process.stdout.write(line);
    // In another turn, when the process would have ended.
    if (++logged === 2) setTimeout(() => { console.log("alive"); process.exit(0); }, 1);
  };
  logUncaughtErrors(createLog(new Redactor(), write));
  void Promise.reject(new Error("in a promise"));
  setTimeout(() => { throw new Error("in a timer"); }, 1);
`;

test("an uncaught error is logged and does not end the process", async () => {
  const script = join(root, "failing.ts");
  writeFileSync(script, failingProcess);
  const end = await runCommand({ ...command, file: process.execPath, args: [script], timeoutMs: 30_000 });
  expect(end).toMatchObject({ kind: "exited", code: 0 });
  const printed = end.kind === "exited" ? end.stdout : "";
  for (const text of ["in a promise", "in a timer", "alive"]) expect(printed).toContain(text);
});
