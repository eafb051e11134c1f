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
  return parseRawPackets(bytes)?.map(textPacket);
}

export const textPacket = (packet: RawPacket): Packet =>
  packet.kind === "line" ? { kind: "line", text: packet.data.toString("utf8").replace(/\n$/, "") } : packet;

/** A line may contain any bytes. */
export type RawPacket = { readonly kind: "line"; readonly data: Buffer } | Exclude<Packet, { kind: "line" }>;

/** Undefined if the bytes are not a whole number of packets, or too many. */
export function parseRawPackets(bytes: Uint8Array): readonly RawPacket[] | undefined {
  const reader = new PacketReader();
  const packets = reader.read(bytes);
  return reader.isBetweenPackets ? packets : undefined;
}

const noBytes = Buffer.alloc(0);

/** Reads packets as their bytes arrive, and keeps none. In linear time, however small the parts are. */
export class PacketReader {
  /** With room for the packet that is not complete, or for its length. */
  #rest = noBytes;
  #filled = 0;
  #count = 0;

  /** Whether everything until now was a whole number of packets. */
  get isBetweenPackets(): boolean {
    return this.#filled === 0;
  }

  /** The packets that are complete now. Undefined if these are no packets, or too many. */
  read(part: Uint8Array): readonly RawPacket[] | undefined {
    const data = this.#withRest(Buffer.from(part.buffer, part.byteOffset, part.byteLength));
    const packets: RawPacket[] = [];
    let needed = lengthDigits;
    let at = 0;
    while (at + lengthDigits <= data.length) {
      const length = lengthAt(data, at);
      if (length === undefined) return undefined;
      needed = Math.max(length, lengthDigits);
      if (at + needed > data.length) break;
      if (++this.#count > maxPackets) return undefined;
      packets.push(special[length] ?? { kind: "line", data: data.subarray(at + lengthDigits, at + length) });
      at += needed;
      needed = lengthDigits;
    }
    if (at < data.length) this.#keep(data.subarray(at), needed);
    return packets;
  }

  #keep(rest: Buffer, needed: number): void {
    this.#rest = Buffer.alloc(needed);
    this.#filled = rest.copy(this.#rest);
  }

  /** Nothing until what is needed is complete. */
  #withRest(part: Buffer): Buffer {
    const copied = part.copy(this.#rest, this.#filled);
    this.#filled += copied;
    if (this.#filled < this.#rest.length) return noBytes;
    const data = this.#filled === 0 ? part : Buffer.concat([this.#rest, part.subarray(copied)]);
    this.#rest = noBytes;
    this.#filled = 0;
    return data;
  }
}

/** Undefined if no packet begins there. */
function lengthAt(data: Buffer, at: number): number | undefined {
  const digits = data.toString("latin1", at, at + lengthDigits);
  if (!/^[0-9a-fA-F]{4}$/.test(digits)) return undefined;
  const length = Number.parseInt(digits, 16);
  return length in special || (length >= lengthDigits && length <= maxLength) ? length : undefined;
}
