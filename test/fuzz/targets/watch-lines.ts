/** The lines of a watch, in chunks of any size. */
import { ApiError } from "@pko/kube";

import { parseWatchEvent, readLines as readWatchLines } from "../../../packages/kube/src/client/watch.ts";
import { LineTooLong, readLines } from "../../../packages/rpc/src/transport/lines.ts";
import { chunks } from "../engine/chunks.ts";
import { hold, secret, textOf, type Target } from "../engine/target.ts";

const maxLineBytes = 1024;

async function check(input: Uint8Array): Promise<void> {
  const expected = textOf(input).split("\n");
  const rest = expected.pop();
  await checkWatch(input, { expected, rest });
  await checkStream(input, { expected: rest === "" ? expected : [...expected, rest ?? ""] });
  for (const line of expected) checkEvent(line);
}

async function checkWatch(
  input: Uint8Array,
  { expected, rest }: { expected: readonly string[]; rest: string | undefined },
) {
  const lines: string[] = [];
  let error: unknown;
  try {
    for await (const line of readWatchLines(streamOf(input))) lines.push(line);
  } catch (thrown) {
    error = thrown;
  }
  hold(Bun.deepEquals(lines, expected.map(decodedLine)), "a watch has the lines of its stream");
  hold((error !== undefined) === (rest !== ""), "only a watch that ends within a line fails");
}

function streamOf(input: Uint8Array): ReadableStream<Uint8Array> {
  const source = chunks(input);
  return new ReadableStream({
    async pull(controller) {
      const next = await source.next();
      if (next.done) controller.close();
      else controller.enqueue(next.value);
    },
  });
}

/** Each line is decoded alone, and a byte order mark at its start is dropped. */
const decodedLine = (line: string): string => line.replace(/^\uFEFF/, "");

async function checkStream(input: Uint8Array, { expected }: { expected: readonly string[] }): Promise<void> {
  const lines: string[] = [];
  try {
    for await (const line of readLines(chunks(input), maxLineBytes)) lines.push(line);
  } catch (error) {
    hold(error instanceof LineTooLong, "a stream fails only if a line is too long");
    return;
  }
  hold(Bun.deepEquals(lines, expected.map(decodedLine)), "a stream has the lines that were sent");
  hold(
    lines.every((line) => Buffer.byteLength(line) <= 3 * maxLineBytes),
    "no line is longer than allowed",
  );
}

function checkEvent(line: string): void {
  try {
    const event = parseWatchEvent("watch stacks", line);
    if (event && event.type !== "BOOKMARK") hold(typeof event.object === "object", "an event has an object");
  } catch (error) {
    if (error instanceof ApiError) return;
    hold(error instanceof SyntaxError, "an event fails only as an error of the API server, or if it is not JSON");
    hold(!error.message.includes(secret), "the error does not quote the event");
  }
}

export const watchLinesTarget: Target = {
  name: "watch-lines",
  form: "text",
  seeds: [
    '{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"1"}}}\n{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}\n',
    '{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old","details":{"causes":[{"field":"a"}],"retryAfterSeconds":1}}}\n',
  ],
  words: ["\n", "\r\n", "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", '"object":', `"${secret}"`],
  rounds: 3000,
  check,
};
