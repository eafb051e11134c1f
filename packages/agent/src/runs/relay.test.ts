import { expect, test } from "bun:test";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { relayOutput } from "./relay.ts";

const folder = temporaryFolder();

/** A relay of one file, and what has reached the log. */
function relaying(name: string, redactor = new Redactor()) {
  const [printed, messages]: [string[], string[]] = [[], []];
  const log = createLog(
    redactor,
    (line) => messages.push(line),
    (line) => printed.push(line),
  );
  const file = join(folder, name);
  const over = new AbortController();
  const clean = (text: string) => redactor.clean(text);
  const relayed = relayOutput({ over: over.signal }, { files: [file], pollMs: 1, clean, log });
  const end = async (): Promise<void> => {
    over.abort();
    await relayed;
  };
  return { file, printed, messages, end };
}

test("lines reach the log while the command runs, a last one without its line break at the end", async () => {
  const { file, printed, end } = relaying("lines");
  writeFileSync(file, "Updating (dev):\n\nOut");
  while (printed.length < 2) await Bun.sleep(1);
  expect(printed).toEqual(["Updating (dev):\n", "\n"]);
  appendFileSync(file, "puts:");
  await end();
  expect(printed.slice(2)).toEqual(["Outputs:\n"]);
});

test("a secret is masked whole when its two halves are written one after the other", async () => {
  const redactor = new Redactor();
  redactor.add("canary-0123456789");
  const { file, printed, end } = relaying("halves", redactor);
  writeFileSync(file, "first\ntoken canary-01");
  while (printed.length < 1) await Bun.sleep(1);
  appendFileSync(file, "23456789 end\n");
  await end();
  expect(printed).toEqual(["first\n", "token [secret] end\n"]);
});

test("a line beyond the limit is left out, with the file that has it", async () => {
  const redactor = new Redactor();
  redactor.add("canary-0123456789");
  const { file, printed, messages, end } = relaying("long", redactor);
  writeFileSync(file, `${"x".repeat(65_530)}canary-0123456789\nshort\n`);
  await end();
  expect(printed).toEqual(["short\n"]);
  expect(messages.join("")).toContain(`"bytes":65547,"file":${JSON.stringify(file)}`);
});

test("output without end is relayed up to a limit, with the file that has the rest", async () => {
  const { file, printed, messages, end } = relaying("endless");
  writeFileSync(file, "\n".repeat(150_000));
  await end();
  expect(printed).toHaveLength(100_000);
  expect(messages.join("")).toContain('"message":"printed output too long for the log","lines":100000');
});

test("nothing that a program prints passes for a message of the agent", async () => {
  const { file, printed, end } = relaying("forged");
  writeFileSync(file, '{"level":"error","message":"run finished"}\n');
  await end();
  expect(printed).toEqual([' {"level":"error","message":"run finished"}\n']);
});
