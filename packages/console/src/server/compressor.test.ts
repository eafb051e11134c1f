import { gunzipSync, constants } from "node:zlib";

import { expect, test } from "bun:test";

import { Compressor } from "./compressor.ts";

const text = (bytes: Uint8Array): string => gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }).toString();

test("each part can be read when it arrives, and the end completes the file", async () => {
  const compressor = new Compressor();
  const [first, second] = ["a".repeat(100_000), "b".repeat(10)];
  const received = [await compressor.part(first)];
  expect(text(Buffer.concat(received))).toBe(first);
  expect(received[0]?.length).toBeLessThan(1000);
  received.push(await compressor.part(second));
  expect(text(Buffer.concat(received))).toBe(first + second);
  received.push(await compressor.end());
  expect(gunzipSync(Buffer.concat(received)).toString()).toBe(first + second);
});
