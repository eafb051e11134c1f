import { expect, test } from "bun:test";
import { LineTooLong, readLines, readText } from "./lines.ts";

async function* bytes(...chunks: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk;
}

async function all(chunks: AsyncIterable<Uint8Array>, max = 100): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of readLines(chunks, max)) lines.push(line);
  return lines;
}

test("reads complete lines however the chunks are split", async () => {
  const whole = new TextEncoder().encode("eins\nzwölf 🙂\n\nend");
  const single = Array.from(whole, (byte) => Uint8Array.of(byte));
  expect(await all(bytes(whole))).toEqual(["eins", "zwölf 🙂", "", "end"]);
  expect(await all(bytes(...single))).toEqual(["eins", "zwölf 🙂", "", "end"]);
});

test("rejects a line beyond the limit, wherever it ends", async () => {
  for (const chunks of [bytes("x".repeat(101)), bytes(`${"x".repeat(101)}\n`), bytes("x".repeat(60), "x".repeat(60))]) {
    const error = await all(chunks).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(LineTooLong);
  }
  expect(await all(bytes(`${"x".repeat(100)}\n`))).toEqual(["x".repeat(100)]);
});

test("returns undefined for a body beyond the limit", async () => {
  expect(await readText(bytes("ab", "cd"), 4)).toBe("abcd");
  expect(await readText(bytes("ab", "cde"), 4)).toBeUndefined();
});
