import { expect, test } from "bun:test";

import { linePacket, PacketReader, parsePackets, type Packet } from "./pkt-line.ts";

const bytes = (text: string): Uint8Array => Buffer.from(text);
const line = (text: string): Packet => ({ kind: "line", text });

test("packets are written with their length in hex digits", () => {
  expect(linePacket("peel")).toBe("0009peel\n");
  expect(linePacket("ref-prefix refs/heads/ä")).toBe(`001dref-prefix refs/heads/ä\n`);
  expect(() => linePacket("x".repeat(65_516))).toThrow("does not fit");
});

const whole: readonly (readonly [string, string, readonly Packet[]])[] = [
  ["nothing", "", []],
  ["lines and a flush packet", "0009peel\n0000", [line("peel"), { kind: "flush" }]],
  ["a line without a line break", "0008peel", [line("peel")]],
  ["an empty line", "0004", [line("")]],
  ["the other special packets", "00010002", [{ kind: "delimiter" }, { kind: "end" }]],
];
test.each(whole)("reads %s", (_, text, packets) => {
  expect(parsePackets(bytes(text))).toEqual([...packets]);
});

const broken: readonly (readonly [string, string])[] = [
  ["a line that is cut off", "0009pee"],
  ["a length that is cut off", "0009peel\n00"],
  ["a length that is not a number", "00g9peel\n"],
  ["a sign in the length", "-001peel\n"],
  ["a length of three", "0003"],
  ["a length that is too large", `fff1${"x".repeat(65_517)}`],
  ["a page for people", "<!DOCTYPE html>"],
];
test.each(broken)("rejects %s", (_, text) => {
  expect(parsePackets(bytes(text))).toBeUndefined();
});

test("rejects a response of very many tiny packets", () => {
  expect(parsePackets(bytes("0004".repeat(250_000)))).toHaveLength(250_000);
  expect(parsePackets(bytes("0004".repeat(250_001)))).toBeUndefined();
});

test("a reader keeps no more than the packet that is not complete, however small the parts are", () => {
  const reader = new PacketReader();
  const text = `${linePacket("x".repeat(60_000))}0001${linePacket("")}`;
  const found = [...bytes(text)].flatMap((byte) => reader.read(Uint8Array.of(byte)) ?? []);
  expect(found.map((packet) => (packet.kind === "line" ? packet.data.length : packet.kind))).toEqual([
    60_001,
    "delimiter",
    1,
  ]);
  expect(reader.isBetweenPackets).toBe(true);
  reader.read(bytes("000"));
  expect(reader.isBetweenPackets).toBe(false);
});
