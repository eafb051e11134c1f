import { expect, test } from "bun:test";

import { decodeContent, emptyContent, encodeContent, type RecordContent } from "./record.ts";

const content: RecordContent = {
  ...emptyContent,
  events: [{ seq: 1, time: "2026-01-01T00:00:00Z", event: { kind: "step", name: "up" } }],
  resources: [{ urn: "urn:pulumi:dev::demo::pulumi:pulumi:Stack::demo-dev" }],
};

const gzip = async (text: string): Promise<string> =>
  (await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"))).bytes()).toBase64();

test("content survives encoding", async () => {
  expect(await decodeContent(await encodeContent(content))).toEqual(content);
});

test("content that cannot be read is undefined", async () => {
  const unreadable: readonly (readonly [string, string])[] = [
    ["not base64", "***"],
    ["not gzip", btoa("text")],
    ["cut", (await encodeContent(content)).slice(0, 40)],
    ["not JSON", await gzip("{")],
    ["of a later version", await gzip(JSON.stringify({ ...content, version: 2 }))],
    ["a bomb", await gzip(" ".repeat(40 * 1024 * 1024))],
  ];
  for (const [what, encoded] of unreadable) {
    expect({ what, decoded: await decodeContent(encoded) }).toEqual({ what, decoded: undefined });
  }
});
