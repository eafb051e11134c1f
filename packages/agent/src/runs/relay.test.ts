import { expect, test } from "bun:test";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { relayOutput } from "./relay.ts";

const folder = temporaryFolder();

/** Starts a relay of one file; `printed` and `messages` are the log. */
function startRelay(name: string, redactor = new Redactor(), isLast?: (text: string) => boolean) {
  const [printed, messages]: [string[], string[]] = [[], []];
  const log = createLog(redactor, (line) => messages.push(line), { print: (line) => printed.push(line) });
  const file = join(folder, name);
  const over = new AbortController();
  const clean = (text: string) => redactor.clean(text);
  const relayed = relayOutput(
    { over: over.signal },
    { files: [file], pollMs: 1, clean, log, ...(isLast && { isLast }) },
  );
  const end = async (): Promise<void> => {
    over.abort();
    await relayed;
  };
  return { file, printed, messages, end };
}

test("lines are logged while the command runs, and an incomplete last line at the end", async () => {
  const { file, printed, end } = startRelay("lines");
  writeFileSync(file, "Updating (dev):\n\nOut");
  while (printed.length < 2) await Bun.sleep(1);
  expect(printed).toEqual(["Updating (dev):\n", "\n"]);
  appendFileSync(file, "puts:");
  await end();
  expect(printed.slice(2)).toEqual(["Outputs:\n"]);
});

test("nothing is logged after the last line that may be shown, and nothing of a line that is too long", async () => {
  const isLast = (text: string) => text.includes("violates plan");
  const values = startRelay("values", new Redactor(), isLast);
  writeFileSync(values.file, "one\nviolates plan\ncanary\n");
  await values.end();
  expect(values.printed).toEqual(["one\n", "violates plan\n"]);
  expect(values.messages.join("")).toContain("the rest of the output is not shown");
  const long = startRelay("long", new Redactor(), isLast);
  writeFileSync(long.file, `${"x".repeat(70_000)} violates plan\ncanary\n`);
  await long.end();
  expect(long.printed).toEqual([]);
});

test("a secret is masked even if it is written in two parts", async () => {
  const redactor = new Redactor();
  redactor.add("canary-0123456789");
  const { file, printed, end } = startRelay("halves", redactor);
  writeFileSync(file, "first\ntoken canary-01");
  while (printed.length < 1) await Bun.sleep(1);
  appendFileSync(file, "23456789 end\n");
  await end();
  expect(printed).toEqual(["first\n", "token [secret] end\n"]);
});

test("a line beyond the limit is replaced by a message with its file", async () => {
  const redactor = new Redactor();
  redactor.add("canary-0123456789");
  const { file, printed, messages, end } = startRelay("long", redactor);
  writeFileSync(file, `${"x".repeat(65_530)}canary-0123456789\nshort\n`);
  await end();
  expect(printed).toEqual(["short\n"]);
  expect(messages.join("")).toContain(`"bytes":65547,"file":${JSON.stringify(file)}`);
});

test("endless output is logged up to a limit, then a message with its file", async () => {
  const { file, printed, messages, end } = startRelay("endless");
  writeFileSync(file, "\n".repeat(150_000));
  await end();
  expect(printed).toHaveLength(100_000);
  expect(messages.join("")).toContain('"msg":"output is too long for the log","logger":"agent","lines":100000');
});

test("a program cannot print a line that looks like a message of the agent", async () => {
  const { file, printed, end } = startRelay("forged");
  writeFileSync(file, '{"level":"error","message":"run finished"}\n');
  await end();
  expect(printed).toEqual([' {"level":"error","message":"run finished"}\n']);
});
