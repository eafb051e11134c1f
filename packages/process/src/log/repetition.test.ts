import { join } from "node:path";

import { describe, expect, test } from "bun:test";

import type { LogClock } from "./clock.ts";
import { logger, type LogKeys, type Logger } from "./index.ts";

interface Scene {
  readonly log: Logger;
  /** Moves time forward, and runs the timer if it is due. */
  readonly pass: (seconds: number) => void;
  readonly written: () => LogKeys[];
}

function scene(): Scene {
  let now = 0;
  let timer: { at: number; callback: () => void } | undefined;
  const lines: string[] = [];
  const clock: LogClock = {
    now: () => now,
    monotonic: () => now,
    after(ms, callback) {
      timer = { at: now + ms, callback };
      return () => (timer = undefined);
    },
  };
  return {
    log: logger({ clock, level: "debug", write: (line) => lines.push(line) }),
    pass(seconds) {
      now += seconds * 1000;
      if (timer && timer.at <= now) timer.callback();
    },
    written: () => lines.splice(0).map((line) => JSON.parse(line) as LogKeys),
  };
}

function repeat(times: number, log: (index: number) => void): void {
  for (let index = 0; index < times; index++) log(index);
}

/** What a process writes that ends like this after it has logged the same twelve times. */
async function written(end: string, options = ""): Promise<LogKeys[]> {
  const modules = ["index.ts", "../exit.ts"].map((path) => JSON.stringify(join(import.meta.dir, path)));
  const program = `import { logger } from ${modules[0]}; import { exitWhenWritten } from ${modules[1]};
    const log = logger({ ${options} }); for (let i = 0; i < 12; i++) log.warn("again"); ${end}`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const lines = (await new Response(child.stderr).text()).trim().split("\n");
  return lines.map((line) => JSON.parse(line) as LogKeys);
}

test.each([
  ["has nothing left to do", "", ""],
  ["exits", "process.exit(1);", ""],
  ["waits until everything is written", "await exitWhenWritten(0);", "write: (line) => process.stderr.write(line)"],
])(
  "the number of lines that were not written is not lost if the process %s",
  async (_, end, options) => {
    const lines = await written(end, options);
    expect(lines.map(({ repeated }) => repeated)).toEqual([...Array.from({ length: 10 }, () => undefined), 2]);
  },
  60_000,
);

describe("lines that repeat", () => {
  test("are written ten times a minute, and then counted in one line", () => {
    const { log, pass, written } = scene();
    repeat(25, () => log.warn("watch interrupted", { what: "stacks" }));
    expect(written()).toHaveLength(10);
    pass(59);
    expect(written()).toEqual([]);
    pass(1);
    expect(written()).toMatchObject([{ level: "warn", msg: "watch interrupted", what: "stacks", repeated: 15 }]);
    pass(600);
    expect(written()).toEqual([]);
  });

  test("are written again in the next minute", () => {
    const { log, pass, written } = scene();
    repeat(11, () => log.info("a"));
    pass(60);
    repeat(3, () => log.info("a"));
    expect(written().slice(10)).toMatchObject([{ repeated: 1 }, { msg: "a" }, { msg: "a" }, { msg: "a" }]);
  });

  test("are counted apart from others, each in its own minute", () => {
    const { log, pass, written } = scene();
    repeat(12, () => log.info("a"));
    pass(30);
    repeat(13, () => log.info("b"));
    expect(written()).toHaveLength(20);
    pass(30);
    expect(written()).toMatchObject([{ msg: "a", repeated: 2 }]);
    pass(30);
    expect(written()).toMatchObject([{ msg: "b", repeated: 3 }]);
  });

  test.each<[string, (log: Logger, index: number) => void]>([
    ["the pass", (log, index) => log.info("a", { reconcileID: `${index}`, traceID: `t${index}`, spanID: `s${index}` })],
    ["a number", (log, index) => log.info("a", { failures: index, ms: index * 7 })],
    ["the stack trace", (log, index) => log.info("a", { error: errorWithStack(`at line ${index}`) })],
  ])("are the same if they differ only in %s", (_, write) => {
    const { log, written } = scene();
    repeat(20, (index) => write(log, index));
    expect(written()).toHaveLength(10);
  });

  test.each<[string, (log: Logger, index: number) => void]>([
    ["the object", (log, index) => log.info("a", { name: `web-${index}` })],
    ["the message", (log, index) => log.info(`a ${index}`)],
    ["the error", (log, index) => log.info("a", { error: new Error(`${index}`) })],
    [
      "the cause of the error",
      (log, index) => log.info("a", { error: new Error("x", { cause: new Error(`${index}`) }) }),
    ],
    ["the level", (log, index) => (index % 2 === 0 ? log.info("a") : log.warn("a"))],
  ])("are not the same if they differ in %s", (_, write) => {
    const { log, written } = scene();
    repeat(20, (index) => write(log, index));
    expect(written()).toHaveLength(20);
  });

  test("are all written if someone debugs", () => {
    const { log, written } = scene();
    repeat(20, () => log.debug("reconciled"));
    expect(written()).toHaveLength(20);
  });

  test("are all written if there are too many different ones to count", () => {
    const { log, written } = scene();
    repeat(2000, (index) => log.info("a", { name: `web-${index}` }));
    written();
    repeat(20, () => log.info("b"));
    expect(written()).toHaveLength(20);
  });
});

const errorWithStack = (stack: string): Error => Object.assign(new Error("same"), { stack });
