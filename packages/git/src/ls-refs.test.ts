import { expect, test } from "bun:test";

import { lsRefsCommand, parseCapabilities, RefReader } from "./ls-refs.ts";
import { flushPacket, linePacket, parsePackets, type Packet } from "./pkt-line.ts";

const [commit, tag] = ["a".repeat(40), "b".repeat(40)];
const packetsOf = (text: string): readonly Packet[] => parsePackets(Buffer.from(text)) ?? [];
const textOf = (...lines: readonly string[]): string => lines.map(linePacket).join("") + flushPacket;
const listOf = (...lines: readonly string[]): readonly Packet[] => packetsOf(textOf(...lines));

test("the command names the refs, and the object format that the server announced", () => {
  const names = ["refs/heads/main", "refs/tags/main"];
  expect(lsRefsCommand({ names, uploadPack: { objectFormat: "sha256" } })).toBe(
    "0014command=ls-refs\n" +
      "0019object-format=sha256\n" +
      "00010009peel\n" +
      "001fref-prefix refs/heads/main\n" +
      "001eref-prefix refs/tags/main\n0000",
  );
});

test("the command names no refs that cannot exist, and none of a long list", () => {
  const uploadPack = {};
  const bare = lsRefsCommand({ names: [], uploadPack });
  expect(lsRefsCommand({ names: ["refs/heads/a b", "refs/heads/a\nb", "x".repeat(5000)], uploadPack })).toBe(bare);
  const many = Array.from({ length: 201 }, (_, index) => `refs/heads/${index}`);
  expect(lsRefsCommand({ names: many, uploadPack })).toBe(bare);
});

const capabilities: readonly (readonly [string, readonly Packet[], object | undefined])[] = [
  [
    "version 2",
    listOf("version 2", "agent=git/2.39.5", "ls-refs=unborn", "object-format=sha1"),
    { objectFormat: "sha1" },
  ],
  ["version 2 without an object format", listOf("version 2", "ls-refs"), {}],
  ["partial fetches", listOf("version 2", "ls-refs", "fetch=shallow wait-for-done filter"), { canFilter: true }],
  ["fetches that are not partial", listOf("version 2", "ls-refs", "fetch=shallow"), {}],
  [
    "version 2 after the name of the service",
    packetsOf(`${linePacket("# service=git-upload-pack")}0000${linePacket("version 2")}${linePacket("ls-refs")}0000`),
    {},
  ],
  ["version 2 without ls-refs", listOf("version 2", "fetch"), undefined],
  ["version 1", listOf("version 1", `${commit} HEAD`), undefined],
  ["version 0", listOf(`${commit} HEAD\0multi_ack`), undefined],
  ["a list without an end", listOf("version 2", "ls-refs").slice(0, -1), undefined],
  ["an error", listOf("ERR access denied"), undefined],
  ["nothing", [], undefined],
];
test.each(capabilities)("an announcement of %s is recognized", (_, packets, expected) => {
  expect(parseCapabilities(packets)).toEqual(expected);
});

const names = new Set(["refs/heads/main", "refs/tags/v1"]);
const lists: readonly (readonly [string, string, readonly (readonly [string, string])[] | undefined])[] = [
  ["a branch", textOf(`${commit} refs/heads/main`), [["refs/heads/main", commit]]],
  ["not a longer name with the same prefix", textOf(`${commit} refs/heads/main-2`), []],
  ["the commit of an annotated tag", textOf(`${tag} refs/tags/v1 peeled:${commit}`), [["refs/tags/v1", commit]]],
  [
    "a ref with other attributes",
    textOf(`${tag} refs/tags/v1 symref-target:refs/x peeled:${commit}`),
    [["refs/tags/v1", commit]],
  ],
  ["a SHA-256 commit", textOf(`${"c".repeat(64)} refs/heads/main`), [["refs/heads/main", "c".repeat(64)]]],
  ["that no ref exists", textOf(), []],
  ["nothing in a list without an end", textOf(`${commit} refs/heads/main`).slice(0, -flushPacket.length), undefined],
  ["nothing in an empty body", "", undefined],
  ["nothing in an error", textOf("ERR access denied"), undefined],
  ["nothing after an object ID of another length", textOf(`${"a".repeat(41)} refs/heads/main`), undefined],
  ["nothing in a list that continues after its end", textOf() + textOf(), undefined],
];
test.each(lists)("a list of refs shows %s, however it is divided", (_, text, expected) => {
  for (const size of [1, 3, 60, 1000]) {
    const found = refsIn(text, size);
    expect(found && [...found]).toEqual(expected?.map(([name, id]) => [name, id] as [string, string]));
  }
});

function refsIn(text: string, partSize: number): ReadonlyMap<string, string> | undefined {
  const reader = new RefReader(names);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += partSize) {
    if (!reader.add(bytes.subarray(at, at + partSize))) return undefined;
  }
  return reader.end();
}

test("what is no list of refs is not read to its end", () => {
  const reader = new RefReader(names);
  expect(reader.add(Buffer.from(linePacket(`${commit} refs/heads/main`)))).toBe(true);
  expect(reader.add(Buffer.from(linePacket("a page for people")))).toBe(false);
  expect(reader.add(Buffer.from(textOf()))).toBe(false);
  expect(reader.end()).toBeUndefined();
});
