import { describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../testing/folders.ts";
import { cut, lastLines, lastPart, quoteName } from "./clean-text.ts";
import { cleanOutput, runCommand } from "./command.ts";
import { cleanRelative, isInside, readTail, resolveInside, writeAtomically } from "./files.ts";
import { createLog } from "./log.ts";
import { identify, isAlive, sessionMembers } from "./processes.ts";
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
    expect(await readTail(join(root, "tail"), 4)).toEqual({ text: "6789", bytes: 10, isCutAtStart: true });
    expect(await readTail(join(root, "tail"), 10)).toEqual({ text: "0123456789", bytes: 10, isCutAtStart: false });
    expect(await readTail(join(root, "nope"), 4)).toEqual({ text: "", bytes: 0, isCutAtStart: false });
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
    const text: string = redactor.clean(
      `canary-1 ${JSON.stringify({ a: 'quo"ted-canary' })} line-two-canary visible-value canary-env ab canary-aws canary-url visible-url`,
    );
    expect(text).toBe(`[secret] {"a":"[secret]"} [secret] visible-value [secret] ab [secret] [secret] visible-url`);
  });

  test("forgets passing secrets in time, the oldest first", () => {
    const redactor = new Redactor();
    for (let index = 0; index < 200; index += 1) redactor.addPassing(`canary-${index}`);
    expect<string>(redactor.clean("canary-199 canary-150")).toBe("[secret] [secret]");
    expect<string>(redactor.clean("canary-20x")).toBe("canary-20x");
    expect<string>(redactor.clean(`canary-20 ${btoa("canary-20")}`)).toBe(`canary-20 ${btoa("canary-20")}`);
  });

  test("are known in every spelling", () => {
    const redactor = new Redactor();
    const secret = "p&ss/w<rd+ (canary)=é";
    redactor.add(secret);
    const spellings = {
      "as it is": secret,
      "as a component of a URL": encodeURIComponent(secret),
      "in a form": new URLSearchParams({ secret }).toString().slice("secret=".length),
      "by Go, as JSON": "p\\u0026ss/w\\u003crd+ (canary)=é",
      "with colours": `p&ss\u001B[31m/w<rd+ (canary)=é`,
    };
    for (const [how, spelling] of Object.entries(spellings)) {
      expect<string>(redactor.clean(`${how}: ${spelling}.`)).toBe(`${how}: [secret].`);
    }
    for (const before of ["", "a", "ab", "user:"]) {
      for (const encoding of ["base64", "base64url"] as const) {
        const text = redactor.clean(Buffer.from(`${before}${secret}${before}`).toString(encoding));
        expect(text).toMatch(/^[^[]{0,9}\[secret\][^\]]{0,9}$/);
      }
    }
  });

  test("inside documents are known by their names", () => {
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

  test("are not what a document says about them", () => {
    const redactor = new Redactor();
    redactor.add(
      '{"secretName": "frontend"}',
      "existingSecret: database\ntokenAudience: production\npasswordPolicy: required",
    );
    const printed = "frontend and database are required in production";
    expect<string>(redactor.clean(printed)).toBe(printed);
  });

  test("across the edge of what is kept are masked", () => {
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

  test("across the edge of what is kept of a command are masked", async () => {
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
      message: "failed",
      error: "with [secret] in it",
    });
  });
});

describe("texts", () => {
  const clean = (text: string) => new Redactor().clean(text);

  test("are cut between characters", () => {
    expect<string>(cut(clean("x😀y"), 4)).toBe("x😀y");
    expect<string>(cut(clean("x😀yz"), 4)).toBe("x😀…");
    expect<string>(cut(clean("x😀yz"), 3)).toBe("x…");
    expect<string>(lastPart(clean("xx😀y"), 2)).toBe("y");
    expect<string>(lastPart(clean("xx😀y"), 3)).toBe("😀y");
    expect(quoteName("ab😀", 3)).toBe('"ab…"');
  });

  test("are well-formed, whatever they came as", () => {
    expect<string>(clean("x\ud83d")).toBe("x\uFFFD");
    expect(quoteName("x\ud83d")).toBe('"x\uFFFD"');
  });

  test("are shown by their last lines", () => {
    expect<string[]>(lastLines(clean("a\n\nb  \nccccc\n"), 2, 4)).toEqual(["b", "ccc…"]);
  });
});

/** Faults of every kind, then a sign of life. */
const faultyProcess = `
  import { surviveFaults } from "${join(import.meta.dir, "faults.ts")}";
  import { createLog } from "${join(import.meta.dir, "log.ts")}";
  import { Redactor } from "${join(import.meta.dir, "redact.ts")}";
  surviveFaults(createLog(new Redactor(), (line) => process.stdout.write(line)));
  void Promise.reject(new Error("nobody waits for this"));
  setTimeout(() => { throw new Error("in a timer"); }, 1);
  setTimeout(() => { console.log("alive"); process.exit(0); }, 200);
`;

test("a fault that nobody catches is told, and does not end the process", async () => {
  const script = join(root, "faulty.ts");
  writeFileSync(script, faultyProcess);
  const end = await runCommand({ ...command, file: process.execPath, args: [script], timeoutMs: 30_000 });
  expect(end).toMatchObject({ kind: "exited", code: 0 });
  const printed = end.kind === "exited" ? end.stdout : "";
  for (const words of ["nobody waits for this", "in a timer", "alive"]) expect(printed).toContain(words);
});
