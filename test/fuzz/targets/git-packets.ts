/** What a Git server sends about its refs. */
import { parseCapabilities, RefReader } from "../../../packages/git/src/ls-refs.ts";
import {
  delimiterPacket,
  flushPacket,
  linePacket,
  parsePackets,
  parseRawPackets,
  type Packet,
  type RawPacket,
} from "../../../packages/git/src/pkt-line.ts";
import { hold, type Target } from "../engine/target.ts";

const names = new Set(["refs/heads/main", "refs/tags/v1", "HEAD"]);

function check(input: Uint8Array): void {
  const raw = parseRawPackets(input);
  const packets = parsePackets(input);
  hold((raw === undefined) === (packets === undefined), "packets are read with and without their bytes");
  if (!raw || !packets) return;
  hold(raw.reduce((sum, packet) => sum + sizeOf(packet), 0) === input.length, "packets contain all bytes");
  checkRoundTrip(packets);
  const refs = refsIn([input]);
  hold(Bun.deepEquals(refs, refsIn(partsOf(input))), "it does not matter how a response is divided");
  for (const [name, commit] of refs ?? []) {
    hold(names.has(name), "only wanted refs are found");
    hold(/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(commit), "a ref has an object ID");
  }
  if (refs) hold(packets.at(-1)?.kind === "flush", "a list of refs has an end");
  parseCapabilities(packets);
}

function refsIn(parts: readonly Uint8Array[]): ReadonlyMap<string, string> | undefined {
  const reader = new RefReader(names);
  return parts.every((part) => reader.add(part)) ? reader.end() : undefined;
}

/** As long as the bytes at their ends: the input decides. */
function partsOf(input: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < input.length; at += parts.at(-1)?.length ?? 1) {
    parts.push(input.subarray(at, at + 1 + ((input[at] ?? 0) % 64)));
  }
  return parts;
}

const sizeOf = (packet: RawPacket): number => 4 + (packet.kind === "line" ? packet.data.length : 0);

const special = { flush: flushPacket, delimiter: delimiterPacket, end: "0002" } as const;

function checkRoundTrip(packets: readonly Packet[]): void {
  const isWritable = packets.every((packet) => packet.kind !== "line" || Buffer.byteLength(packet.text) < 65_000);
  if (!isWritable) return;
  const written = packets.map((packet) => (packet.kind === "line" ? linePacket(packet.text) : special[packet.kind]));
  hold(Bun.deepEquals(parsePackets(Buffer.from(written.join(""))), packets), "packets are read as they were written");
}

/** Corrects the lengths of packets: each ends with a line break. */
function repair(input: Uint8Array): Uint8Array {
  const lines = Buffer.from(input).toString("latin1").split("\n");
  const last = lines.pop() ?? "";
  const repaired = lines.map((line) => {
    const [, before = "", content = ""] = /^((?:000[012])*)(?:[0-9a-f]{4})?(.*)$/s.exec(line) ?? [];
    return `${before}${(content.length + 5).toString(16).padStart(4, "0")}${content}\n`;
  });
  return Buffer.from(repaired.join("") + last, "latin1");
}

const id = "0123456789".repeat(4);

export const gitPacketsTarget: Target = {
  name: "git-packets",
  form: "bytes",
  seeds: [
    [
      linePacket("# service=git-upload-pack"),
      flushPacket,
      ...["version 2", "agent=git/2", "ls-refs=unborn", "fetch=shallow filter", "object-format=sha256"].map(linePacket),
      flushPacket,
    ].join(""),
    [
      linePacket(`${id} refs/heads/main`),
      linePacket(`${id} refs/tags/v1 peeled:${id}`),
      linePacket(`${id} HEAD symref-target:refs/heads/main`),
      flushPacket,
    ].join(""),
  ],
  words: ["0000", "0001", "0002", "0003", "0004", "fff0", "fff1", "ffff", ` peeled:${id}`, "refs/heads/main", id],
  rounds: 4000,
  repair,
  check,
};
