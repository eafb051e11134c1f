/** Git's packets: four hex digits with the length of the packet, themselves included, and then its content. */

export type Packet =
  | { readonly kind: "line"; readonly text: string }
  /** The end of a list, `0000`. */
  | { readonly kind: "flush" }
  /** Between the sections of a list, `0001`. */
  | { readonly kind: "delimiter" }
  /** The end of a response, `0002`. */
  | { readonly kind: "end" };

const special: Readonly<Record<number, Exclude<Packet, { kind: "line" }>>> = {
  0: { kind: "flush" },
  1: { kind: "delimiter" },
  2: { kind: "end" },
};

const lengthDigits = 4;
/** Of a packet with its length. */
const maxLength = 65_520;
/** In memory, a packet takes many times its own size if it is tiny. A list of a hundred thousand refs fits. */
const maxPackets = 250_000;

export const flushPacket = "0000";
export const delimiterPacket = "0001";

export function linePacket(text: string): string {
  const length = Buffer.byteLength(text) + lengthDigits + 1;
  if (length > maxLength) throw new Error(`a line of ${length} bytes does not fit into a packet`);
  return `${length.toString(16).padStart(lengthDigits, "0")}${text}\n`;
}

/** Undefined if the bytes are not a whole number of packets, or too many. */
export function parsePackets(bytes: Uint8Array): readonly Packet[] | undefined {
  return parseRawPackets(bytes)?.map((packet) =>
    packet.kind === "line" ? { kind: "line", text: packet.data.toString("utf8").replace(/\n$/, "") } : packet,
  );
}

/** A line may contain any bytes. */
export type RawPacket = { readonly kind: "line"; readonly data: Buffer } | Exclude<Packet, { kind: "line" }>;

/** Undefined if the bytes are not a whole number of packets, or too many. */
export function parseRawPackets(bytes: Uint8Array): readonly RawPacket[] | undefined {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const packets: RawPacket[] = [];
  for (let at = 0; at < data.length;) {
    const digits = data.toString("latin1", at, at + lengthDigits);
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) return undefined;
    const length = Number.parseInt(digits, 16);
    const packet = special[length] ?? lineIn(data, at, length);
    if (!packet || packets.length >= maxPackets) return undefined;
    packets.push(packet);
    at += Math.max(length, lengthDigits);
  }
  return packets;
}

function lineIn(data: Buffer, at: number, length: number): RawPacket | undefined {
  if (length < lengthDigits || length > maxLength || at + length > data.length) return undefined;
  return { kind: "line", data: data.subarray(at + lengthDigits, at + length) };
}
