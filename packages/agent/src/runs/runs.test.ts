import { describe, expect, test } from "bun:test";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseLogLine, type LogLine, type RunEvent } from "@pko/records";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { EventLog, EventReader } from "./event-log.ts";
import { findPermalink } from "./launcher.ts";
import { listRuns, RunFolder } from "./run-folder.ts";
import { openIfExists, tailLines, tailRewritten } from "./tail.ts";

const root = temporaryFolder();

function folder(runId: string): RunFolder {
  const run = new RunFolder(root, runId);
  mkdirSync(run.path, { recursive: true });
  return run;
}

describe("following a file", () => {
  test("that is created later, line by line, to its end", async () => {
    const path = join(root, "followed");
    const over = new AbortController();
    const lines: string[] = [];
    const following = (async () => {
      for await (const line of tailLines({ path, maxLineBytes: 20, pollMs: 5, over: over.signal })) {
        lines.push(line.kind === "line" ? line.text : `too long: ${line.bytes}`);
      }
    })();
    const read = async (count: number): Promise<void> => {
      while (lines.length < count) await Bun.sleep(1);
    };
    expect(await openIfExists(path)).toBeUndefined();
    writeFileSync(path, "one\ntw");
    await read(1);
    appendFileSync(path, `o\n${"x".repeat(200_000)}\nth`);
    await read(3);
    appendFileSync(path, "ree\nunfinished");
    over.abort();
    await following;
    expect(lines).toEqual(["one", "two", "too long: 200000", "three"]);
  });

  const rewritten: Readonly<Record<string, string>> = {
    "with fewer lines": "new\n",
    "with as many bytes": "new1\nnew2\nnew\n",
    "with more lines than before": "new1\nnew2\nnew3\nnew4\nnew5\n",
  };
  for (const [name, text] of Object.entries(rewritten)) {
    test(`that its writer starts again ${name}`, async () => {
      const path = join(root, `rewritten ${name}`);
      const over = new AbortController();
      const lines: string[] = [];
      const following = (async () => {
        for await (const line of tailRewritten({ path, maxLineBytes: 20, pollMs: 5, over: over.signal })) {
          lines.push(line.kind === "line" ? line.text : line.kind);
        }
      })();
      writeFileSync(path, "old1\nold2\nold");
      while (lines.length < 2) await Bun.sleep(1);
      writeFileSync(path, text);
      over.abort();
      await following;
      expect(lines).toEqual(["old1", "old2", "rewritten", ...text.trimEnd().split("\n")]);
    });
  }
});

describe("events", () => {
  test("written concurrently are numbered in their order on disk", async () => {
    const run = folder("many");
    const log = await EventLog.open(run);
    await Promise.all(
      Array.from({ length: 200 }, (_, index) => log.append({ kind: "notice", message: String(index) })),
    );
    await log.close();
    const seqs: number[] = [];
    for await (const { seq } of new EventReader(run).more()) seqs.push(seq);
    expect(seqs).toEqual(Array.from({ length: 200 }, (_, index) => index + 1));
  });

  test("continue after a crash, after an incomplete line", async () => {
    const run = folder("crashed");
    const first = await EventLog.open(run);
    await first.append({ kind: "permalink", url: "https://x" }, { launch: 0, sequence: 4 });
    await first.close();
    appendFileSync(run.events, '{"type":"event","seq":2,"ti');
    const second = await EventLog.open(run);
    expect(second).toMatchObject({ lastSeq: 1, origin: { launch: 0, sequence: 4 } });
    expect(second.progress.permalink).toBe("https://x");
    await second.append({ kind: "notice", message: "again" });
    await second.close();
    const read: string[] = [];
    for await (const { seq, event } of new EventReader(run).more()) read.push(`${seq} ${event.kind}`);
    expect(read).toEqual(["1 permalink", "2 notice"]);
  });
});

describe("the pod's log", () => {
  const append = async (runId: string, ...events: readonly RunEvent[]): Promise<LogLine[]> => {
    let written = "";
    const log = createLog(new Redactor(), (line) => (written += line));
    const eventLog = await EventLog.open(folder(runId), (event) => log.event(runId, event));
    for (const event of events) await eventLog.append(event);
    await eventLog.close();
    return written.trimEnd().split("\n").map(parseLogLine);
  };

  test("has one line for each event, with the number that it has on disk", async () => {
    const lines = await append("fed", { kind: "step", name: "up" }, { kind: "notice", message: "two\nlines" });
    const stored: LogLine[] = [];
    for await (const { seq, time, event } of new EventReader(new RunFolder(root, "fed")).more()) {
      stored.push({ kind: "event", run: "fed", event: { seq, time, event } });
    }
    expect(lines).toEqual(stored);
    expect(lines).toHaveLength(2);
  });

  test("continues with the next number after a restart, and repeats none", async () => {
    await append("restarted", { kind: "step", name: "up" });
    const lines = await append("restarted", { kind: "notice", message: "again" });
    expect(lines).toMatchObject([{ kind: "event", event: { seq: 2, event: { kind: "notice" } } }]);
  });
});

describe("folders", () => {
  test("that are not runs are ignored", async () => {
    mkdirSync(join(root, "not a run"));
    const names = (await listRuns(root)).map(({ runId }) => runId);
    expect(names).not.toContain("not a run");
  });
});

describe("the link to Pulumi Cloud", () => {
  for (const [name, printed] of Object.entries({
    "for a terminal": "Updating (dev)\n\nView in Browser (Ctrl+O): https://app.pulumi.com/o/p/dev/updates/7\n\n + x",
    "for a pipe": "View Live: https://app.pulumi.com/o/p/dev/updates/7\n",
  })) {
    test(`is found in the CLI's output ${name}`, async () => {
      const run = folder(name.replaceAll(" ", "-"));
      writeFileSync(run.stdout(0), printed);
      expect(await findPermalink(run, 0)).toBe("https://app.pulumi.com/o/p/dev/updates/7");
    });
  }

  test("does not exist without Pulumi Cloud", async () => {
    const run = folder("no-link");
    writeFileSync(run.stdout(0), "Updating (dev)\nSee https://example.com\n");
    expect(await findPermalink(run, 0)).toBeUndefined();
  });

  test("is not searched in quadratic time by a program that prints empty lines", async () => {
    const run = folder("empty-lines");
    writeFileSync(run.stdout(0), "\n".repeat(64 * 1024));
    for (let times = 0; times < 20; times += 1) expect(await findPermalink(run, 0)).toBeUndefined();
  });
});
