import { describe, expect, test } from "bun:test";
import { utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../testing/folders.ts";
import { RunTimeouts } from "./timeouts.ts";

const root = temporaryFolder();
const agoMs = (seconds: number): number => Date.now() - seconds * 1000;

/** A file that the command wrote to this long ago. */
function written(name: string, secondsAgo: number): string {
  const path = join(root, name);
  writeFileSync(path, "Updating (dev):\n");
  utimesSync(path, agoMs(secondsAgo) / 1000, agoMs(secondsAgo) / 1000);
  return path;
}

const command = (startedAt: number, ...files: readonly string[]) => ({
  startedAt,
  files,
  over: new AbortController().signal,
  pollMs: 5,
});

describe("a command of an earlier agent process", () => {
  test("exceeds the total timeout, counted from the start of the run", async () => {
    const timeouts = new RunTimeouts({ totalSeconds: 60 }, agoMs(61));
    expect(await timeouts.exceededBy(command(agoMs(1), written("recent", 0)))).toBe("total");
    expect(timeouts.isTotalExceeded).toBe(true);
  });

  test("exceeds the silence timeout, counted from its last output", async () => {
    const timeouts = new RunTimeouts({ totalSeconds: 3600, silenceSeconds: 60 }, agoMs(100));
    const files = [written("first", 90), written("last", 61), join(root, "missing")];
    expect(await timeouts.exceededBy(command(agoMs(100), ...files))).toBe("silence");
  });
});

describe("a command", () => {
  test("that prints nothing exceeds the silence timeout, counted from its start", async () => {
    const timeouts = new RunTimeouts({ silenceSeconds: 60 }, agoMs(100));
    expect(await timeouts.exceededBy(command(agoMs(61), join(root, "missing")))).toBe("silence");
  });

  test("that has ended exceeds nothing", async () => {
    const timeouts = new RunTimeouts({ totalSeconds: 1, silenceSeconds: 1 }, agoMs(100));
    const ended = { ...command(agoMs(100)), over: AbortSignal.abort() };
    expect(await timeouts.exceededBy(ended)).toBeUndefined();
  });

  test("of a run without timeouts exceeds nothing", async () => {
    const timeouts = new RunTimeouts({}, agoMs(1e9));
    expect(await timeouts.exceededBy(command(agoMs(1e9)))).toBeUndefined();
    expect(timeouts.isTotalExceeded).toBe(false);
  });

  test("whose run started in the future, because the clock was set back, has its whole timeout", async () => {
    const timeouts = new RunTimeouts({ totalSeconds: 60 }, agoMs(-3600));
    expect(timeouts.isTotalExceeded).toBe(false);
  });

  test("is within its timeouts until it ends", async () => {
    const over = new AbortController();
    const timeouts = new RunTimeouts({ totalSeconds: 3600, silenceSeconds: 3600 }, Date.now());
    const exceeded = timeouts.exceededBy({ ...command(Date.now(), written("running", 0)), over: over.signal });
    over.abort();
    expect(await exceeded).toBeUndefined();
  });
});
