import { expect, test } from "bun:test";

import * as browser from "./browser.ts";
import { decodeContent, emptyContent, encodeContent, type RecordContent } from "./record.ts";
import { withoutRepetitions } from "./repetitions.ts";

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

test("what events repeat about resources is left out and added again", async () => {
  const place = { parent: "urn:stack", provider: "urn:provider", id: "7" };
  const step = { kind: "resource", phase: "finished", op: "same", urn: "urn:a", resourceType: "t" } as const;
  const events = [
    { ...step, ...place },
    { ...step, phase: "started", op: "update", parent: "urn:stack" } as const,
    { ...step, ...place, op: "delete-replaced", id: "6" },
    { ...step, ...place, urn: "urn:deleted", op: "delete" },
  ].map((event, index) => ({ seq: index + 1, time: "2026-01-01T00:00:00Z", event }));
  const all: RecordContent = { ...emptyContent, events, resources: [{ urn: "urn:a", ...place }] };
  const compact = withoutRepetitions(all);
  expect(compact.events.map(({ event }) => event)).toEqual([
    step,
    { ...step, phase: "started", op: "update" },
    { ...step, op: "delete-replaced", id: "6" },
    { ...step, ...place, urn: "urn:deleted", op: "delete" },
  ]);
  const encoded = await encodeContent(compact);
  expect(await decodeContent(encoded)).toEqual(all);
  expect(await browser.decodeContent(encoded)).toEqual(all);
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
