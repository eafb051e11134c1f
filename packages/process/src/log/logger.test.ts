import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { expect, test } from "bun:test";
import type { LogClock } from "./clock.ts";
import { logger, parseLogFormat, parseLogLevel, type LoggerOptions, type Logger, type LogLevel } from "./index.ts";

const noon: LogClock = { now: () => Date.UTC(2025, 0, 2, 12), monotonic: () => 0, after: () => () => undefined };

function recording(options: LoggerOptions = {}): { log: Logger; lines: string[]; last: () => unknown } {
  const lines: string[] = [];
  const log = logger({ clock: noon, write: (line) => lines.push(line), ...options });
  return { log, lines, last: (): unknown => JSON.parse(lines.at(-1) ?? "{}") };
}

test("a line is JSON with zap's level, ts and msg, then the keys", () => {
  const { log, lines } = recording();
  log.info("update created", { stack: "dev/web", attempt: 2, absent: undefined });
  expect(lines).toEqual([
    '{"level":"info","ts":"2025-01-02T12:00:00.000Z","msg":"update created","stack":"dev/web","attempt":2}\n',
  ]);
});

test("a key cannot replace level, ts or msg", () => {
  const { log, last } = recording();
  log.info("message", { msg: "forged", level: "error", ts: 0 });
  expect(last()).toEqual({ level: "info", ts: "2025-01-02T12:00:00.000Z", msg: "message" });
});

test("lines below the level are not written", () => {
  const { log, lines } = recording({ level: "warn" });
  log.debug("a");
  log.info("b");
  log.warn("c");
  log.error("d");
  expect(lines.map((line): unknown => JSON.parse(line))).toMatchObject([{ msg: "c" }, { msg: "d" }]);
});

test("the level can change while the process runs", () => {
  let level: LogLevel = "info";
  const { log, lines } = recording({ level: () => level });
  const child = log.child({ logger: "stack" });
  child.debug("a");
  level = "debug";
  child.debug("b");
  level = "error";
  child.warn("c");
  expect(lines.map((line): unknown => JSON.parse(line))).toMatchObject([{ msg: "b" }]);
});

test("a child adds its keys, logger names are joined by dots, and the keys of a line take precedence", () => {
  const { log, last } = recording();
  const child = log.child({ logger: "manager", replica: "a" }).child({ logger: "lease", replica: "b" });
  child.info("hello", { replica: "c" });
  expect(last()).toMatchObject({ logger: "manager.lease", replica: "c" });
});

test("an error shows its chain of causes and only its harmless fields", () => {
  const { log, last } = recording();
  const root = Object.assign(new Error("connection refused"), { code: "ECONNREFUSED", request: { body: "s3cr3t" } });
  log.error("apply failed", { error: new Error("apply of web", { cause: new TypeError("fetch", { cause: root }) }) });
  const cause = { name: "TypeError", message: "fetch", cause: { message: "connection refused", code: "ECONNREFUSED" } };
  expect(last()).toMatchObject({ error: { name: "Error", message: "apply of web", cause } });
  expect(JSON.stringify(last())).toContain("logger.test.ts");
  expect(JSON.stringify(last())).not.toContain("s3cr3t");
});

test("aggregated errors and causes that are not errors are shown", () => {
  const { log, last } = recording();
  log.error("many", { error: new AggregateError([new Error("one"), "two"], "both") });
  expect(last()).toMatchObject({ error: { errors: [{ message: "one" }, "two"] } });
  log.error("odd", { error: new Error("x", { cause: "a text" }) });
  expect(last()).toMatchObject({ error: { cause: "a text" } });
});

test("values of keys that look like secrets are not written at any depth; references are", () => {
  const { log, last } = recording({ redactKeys: ["licence-plate"] });
  log.info("x", {
    accessToken: "s3cr3t",
    Authorization: "s3cr3t",
    sshPrivateKey: "s3cr3t",
    licencePlate: "s3cr3t",
    nested: [{ data: { client_secret: "s3cr3t", "API-Token": "s3cr3t" } }],
    headers: new Map([["authorization", "s3cr3t"]]),
    secretName: "git-auth",
    tokenSecretRef: { name: "pulumi" },
  });
  expect(JSON.stringify(last())).not.toContain("s3cr3t");
  expect(last()).toMatchObject({ secretName: "git-auth", tokenSecretRef: { name: "pulumi" } });
});

test("every text passes the redact hook: messages, values, errors, stacks", () => {
  const { log, lines } = recording({ redact: (text) => text.replaceAll("s3cr3t", "***") });
  log.warn("has s3cr3t", { a: "s3cr3t", b: ["s3cr3t"], error: new Error("bad s3cr3t", { cause: "s3cr3t" }) });
  expect(lines.join("")).not.toContain("s3cr3t");
  expect(lines.join("")).toContain("has ***");
});

test("a URL is written without its credentials", () => {
  const { log, last } = recording();
  log.info("fetch", { url: new URL("https://me:s3cr3t@example.com/x") });
  expect(last()).toMatchObject({ url: "https://example.com/x" });
});

test("cycles, getters that throw, bytes, functions and long texts do not break a line", () => {
  const { log, last } = recording();
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  const broken = {
    get boom(): string {
      throw new Error("no");
    },
  };
  log.info("odd", { cycle, broken, bytes: new Uint8Array(3), fn: () => 1, long: "x".repeat(10_000), big: 10n });
  expect(last()).toMatchObject({ broken: "[unreadable]", bytes: "[3 bytes]", big: "10" });
  expect(JSON.stringify(last()).length).toBeLessThan(8700);
  expect(JSON.stringify(last())).toContain("[too deep]");
});

test("a writer that throws does not fail the caller", () => {
  const { log } = recording({
    write: () => {
      throw new Error("EPIPE");
    },
  });
  expect(() => log.info("x")).not.toThrow();
});

/** The number of lines that a reader receives which starts to read when the pipe has been full for long. */
async function linesReadLate(program: string): Promise<number> {
  const script = '"$0" -e "$1" 2>&1 | { sleep 1; wc -l; }';
  const child = Bun.spawn(["sh", "-c", script, process.execPath, program], { stdin: "ignore", stdout: "pipe" });
  return Number(await new Response(child.stdout).text());
}

test("no line is lost if the reader is slow", async () => {
  const module = JSON.stringify(join(import.meta.dir, "index.ts"));
  const write = 'for (let i = 0; i < 300; i++) log.debug("line", { text: "x".repeat(1000) });';
  const program = `import { logger } from ${module}; const log = logger({ level: "debug" }); ${write}`;
  expect(await linesReadLate(program)).toBe(300);
}, 60_000);

test("a reader that stalls stops the process only for seconds, and later reads how many lines it has missed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "log-"));
  const path = join(folder, "pipe");
  expect(Bun.spawnSync(["mkfifo", path]).exitCode).toBe(0);
  // Opened for both, so that neither waits for the other. What the child inherits blocks.
  const [written, read] = [openSync(path, constants.O_RDWR), openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)];
  const module = JSON.stringify(join(import.meta.dir, "index.ts"));
  const program = `import { logger } from ${module}; const log = logger({ level: "debug" });
    for (let i = 0; i < 300; i++) log.debug("line", { text: "x".repeat(5000) });
    console.log("stalled"); for await (const _ of Bun.stdin.stream()) break; log.debug("last");`;
  try {
    const child = Bun.spawn([process.execPath, "-e", program], { stdin: "pipe", stdout: "pipe", stderr: written });
    await child.stdout.getReader().read();
    const before = readAvailable(read);
    await child.stdin.write("continue\n");
    await child.stdin.end();
    expect(await child.exited).toBe(0);
    const lines = `${before}${readAvailable(read)}`.trim().split("\n");
    const parsed = lines.map((line) => JSON.parse(line) as { msg: string; lines?: number });
    const [lost, last] = parsed.slice(-2);
    expect([lost?.msg, last?.msg]).toEqual(["log lines were lost, because nothing read the log", "last"]);
    expect(parsed.length - 2 + (lost?.lines ?? 0)).toBe(300);
  } finally {
    for (const end of [written, read]) closeSync(end);
    rmSync(folder, { recursive: true });
  }
}, 60_000);

/** Until the pipe is empty. */
function readAvailable(pipe: number): string {
  const chunks: Buffer[] = [];
  try {
    for (;;) {
      const chunk = Buffer.alloc(65_536);
      chunks.push(chunk.subarray(0, readSync(pipe, chunk)));
    }
  } catch (error) {
    expect(error).toMatchObject({ code: "EAGAIN" });
  }
  return Buffer.concat(chunks).toString();
}

test("the console format is human-readable", () => {
  const { log, lines } = recording({ format: "console" });
  log.child({ logger: "stack" }).info("update created", { stack: "dev/web", why: "new commit" });
  expect(lines).toEqual(['2025-01-02T12:00:00.000Z INFO  stack update created stack=dev/web why="new commit"\n']);
  log.error("failed", { error: new Error("outer", { cause: new Error("inner") }) });
  expect(lines.at(-1)).toMatch(/ERROR failed\n {2}Error: outer\n {4}at .*[^]*\n {2}caused by:\n {2}Error: inner\n$/);
});

test("zap's level names and numbers are parsed", () => {
  const levels = ["debug", "INFO", " warn ", "warning", "error", "panic", "fatal", "0", "5", "loud", ""];
  expect(levels.map(parseLogLevel)).toEqual([
    "debug",
    "info",
    "warn",
    "warn",
    "error",
    "error",
    "error",
    "info",
    "debug",
    undefined,
    undefined,
  ]);
  expect(["json", "Console", "xml"].map(parseLogFormat)).toEqual(["json", "console", undefined]);
});
