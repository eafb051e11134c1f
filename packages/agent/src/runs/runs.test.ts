import { describe, expect, test } from "bun:test";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEvent } from "@pko/records";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { EventLog, EventReader } from "./event-log.ts";
import { findPermalink } from "./launcher.ts";
import { logEvent } from "./run-log.ts";
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
  const lines = (event: RunEvent): unknown[] => {
    const written: unknown[] = [];
    const log = createLog(new Redactor(), (line) => written.push(JSON.parse(line)));
    logEvent(log, "run", event);
    return written;
  };
  const urn = "urn:pulumi:dev::web::aws:s3/bucket:Bucket::assets";

  const logged: [string, RunEvent, object][] = [
    [
      "a created resource",
      { kind: "resource", phase: "finished", op: "create", urn, resourceType: "aws:s3/bucket:Bucket" },
      { level: "info", message: "resource finished", op: "create", type: "aws:s3/bucket:Bucket", name: "assets" },
    ],
    [
      "a failed resource",
      { kind: "resource", phase: "failed", op: "update", urn, resourceType: "aws:s3/bucket:Bucket" },
      { level: "error", message: "resource failed", op: "update", name: "assets" },
    ],
    [
      "a program's error",
      { kind: "diagnostic", severity: "error", message: "boom", urn },
      { level: "error", message: "program output", text: "boom" },
    ],
    [
      "the summary",
      { kind: "summary", changes: { create: 2 }, durationSeconds: 3 },
      { message: "step finished", seconds: 3, changes: '{"create":2}' },
    ],
    ["the link to Pulumi Cloud", { kind: "permalink", url: "https://x" }, { url: "https://x" }],
  ];
  for (const [what, event, expected] of logged) {
    test(`has ${what}`, () => {
      expect(lines(event)).toMatchObject([{ run: "run", ...expected }]);
    });
  }

  test("does not have unchanged resources", () => {
    expect(lines({ kind: "resource", phase: "finished", op: "same", urn, resourceType: "a:b:C" })).toEqual([]);
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
});
