import { describe, expect, test } from "bun:test";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEvent } from "@pko/rpc";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { EventLog, EventReader } from "./event-log.ts";
import { findPermalink } from "./launcher.ts";
import { logEvent } from "./run-log.ts";
import { listRuns, RunFolder } from "./run-folder.ts";
import { tailLines } from "./tail.ts";

const root = temporaryFolder();

function folder(runId: string): RunFolder {
  const run = new RunFolder(root, runId);
  mkdirSync(run.path, { recursive: true });
  return run;
}

describe("following a file", () => {
  test("that comes later, line by line, to its end", async () => {
    const path = join(root, "followed");
    const over = new AbortController();
    const lines: string[] = [];
    const following = (async () => {
      for await (const line of tailLines({ path, maxLineBytes: 20, pollMs: 5, over: over.signal })) {
        lines.push(line.kind === "line" ? line.text : `too long: ${line.bytes}`);
      }
    })();
    await Bun.sleep(20);
    writeFileSync(path, "one\ntw");
    await Bun.sleep(20);
    appendFileSync(path, `o\n${"x".repeat(200_000)}\nth`);
    await Bun.sleep(20);
    appendFileSync(path, "ree\nunfinished");
    over.abort();
    await following;
    expect(lines).toEqual(["one", "two", "too long: 200000", "three"]);
  });
});

describe("events", () => {
  test("written by many at once are numbered in the order they are on disk", async () => {
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

  test("go on after a crash, behind a line it cut short", async () => {
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
  const lines = (event: RunEvent): unknown[] => {
    const written: unknown[] = [];
    const log = createLog(new Redactor(), (line) => written.push(JSON.parse(line)));
    logEvent(log, "run", event);
    return written;
  };
  const urn = "urn:pulumi:dev::web::aws:s3/bucket:Bucket::assets";

  const told: [string, RunEvent, object][] = [
    [
      "a resource that is made",
      { kind: "resource", phase: "finished", op: "create", urn, resourceType: "aws:s3/bucket:Bucket" },
      { level: "info", message: "resource finished", op: "create", type: "aws:s3/bucket:Bucket", name: "assets" },
    ],
    [
      "a resource that failed",
      { kind: "resource", phase: "failed", op: "update", urn, resourceType: "aws:s3/bucket:Bucket" },
      { level: "error", message: "resource failed", op: "update", name: "assets" },
    ],
    [
      "a program's error",
      { kind: "diagnostic", severity: "error", message: "boom", urn },
      { level: "error", message: "program said", text: "boom" },
    ],
    [
      "how it ended",
      { kind: "summary", changes: { create: 2 }, durationSeconds: 3 },
      { message: "step finished", seconds: 3, changes: '{"create":2}' },
    ],
    ["the page in Pulumi Cloud", { kind: "permalink", url: "https://x" }, { url: "https://x" }],
  ];
  for (const [what, event, expected] of told) {
    test(`tells ${what}`, () => {
      expect(lines(event)).toMatchObject([{ run: "run", ...expected }]);
    });
  }

  test("is silent about resources that stay as they are", () => {
    expect(lines({ kind: "resource", phase: "finished", op: "same", urn, resourceType: "a:b:C" })).toEqual([]);
  });
});

describe("folders", () => {
  test("that are no runs are passed over", async () => {
    mkdirSync(join(root, "not a run"));
    const names = (await listRuns(root)).map(({ runId }) => runId);
    expect(names).not.toContain("not a run");
  });
});

describe("the link to Pulumi Cloud", () => {
  for (const [name, printed] of Object.entries({
    "of a terminal": "Updating (dev)\n\nView in Browser (Ctrl+O): https://app.pulumi.com/o/p/dev/updates/7\n\n + x",
    "of a pipe": "View Live: https://app.pulumi.com/o/p/dev/updates/7\n",
  })) {
    test(`is found in what the CLI prints, ${name}`, async () => {
      const run = folder(name.replaceAll(" ", "-"));
      writeFileSync(run.stdout(0), printed);
      expect(await findPermalink(run, 0)).toBe("https://app.pulumi.com/o/p/dev/updates/7");
    });
  }

  test("is not there without Pulumi Cloud", async () => {
    const run = folder("no-link");
    writeFileSync(run.stdout(0), "Updating (dev)\nSee https://example.com\n");
    expect(await findPermalink(run, 0)).toBeUndefined();
  });
});
