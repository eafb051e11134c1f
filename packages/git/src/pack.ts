/** Reads the commits and trees of a packfile. Each object is known by the hash of its content, which also proves it. */
import { createHash } from "node:crypto";
import { inflateSync } from "node:zlib";

export interface PackObject {
  readonly type: "commit" | "tree" | "blob" | "tag";
  readonly content: Buffer;
}

/** By object ID. */
export type PackObjects = ReadonlyMap<string, PackObject>;

export type ObjectFormat = "sha1" | "sha256";

const types: Readonly<Record<number, PackObject["type"]>> = { 1: "commit", 2: "tree", 3: "blob", 4: "tag" };
const referenceDelta = 7;
/** Of one object. The tree of a directory with a hundred thousand files fits. */
const maxObjectBytes = 8 * 1024 * 1024;
const headerBytes = 12;

export interface PackLimits {
  readonly format: ObjectFormat;
  /** Only what was requested is expected. */
  readonly maxObjects: number;
  /** What may still be unpacked. Several packs can share it. */
  readonly budget: { bytes: number };
}

/** Throws for a pack that is damaged, too large, or refers to objects outside of it. */
export function readPack(pack: Buffer, { format, maxObjects, budget }: PackLimits): PackObjects {
  const count = readHeader(pack);
  if (count > maxObjects) throw new Error("the pack has more objects than were requested");
  const hashBytes = format === "sha1" ? 20 : 32;
  const spend = (size: number): void => {
    budget.bytes -= size;
    if (budget.bytes < 0) throw new Error("the objects are too large");
  };
  const objects = new Map<string, PackObject>();
  let at = headerBytes;
  for (let index = 0; index < count; index++) {
    const { type, size, next } = readEntryHeader(pack, at);
    spend(size);
    const base = type === referenceDelta ? pack.toString("hex", next, next + hashBytes) : undefined;
    const { content, end } = inflate(pack, base === undefined ? next : next + hashBytes, size);
    const object = base === undefined ? plainObject(type, content) : applyDelta(objects.get(base), content, spend);
    objects.set(objectId(object, format), object);
    at = end;
  }
  return objects;
}

/** The number of objects. */
function readHeader(pack: Buffer): number {
  if (pack.length < headerBytes || pack.toString("latin1", 0, 4) !== "PACK" || pack.readUInt32BE(4) !== 2) {
    throw new Error("the response is not a pack of version 2");
  }
  return pack.readUInt32BE(8);
}

const byteAt = (bytes: Buffer, at: number): number => {
  const byte = bytes[at];
  if (byte === undefined) throw new Error("the pack is cut off");
  return byte;
};

function readEntryHeader(pack: Buffer, from: number): { type: number; size: number; next: number } {
  let at = from;
  let byte = byteAt(pack, at++);
  const type = (byte >> 4) & 7;
  let size = byte & 15;
  for (let factor = 16; byte & 128; factor *= 128) {
    byte = byteAt(pack, at++);
    size += (byte & 127) * factor;
    if (size > maxObjectBytes) throw new Error("an object of the pack is too large");
  }
  return { type, size, next: at };
}

function inflate(pack: Buffer, from: number, size: number): { content: Buffer; end: number } {
  const options = { info: true, maxOutputLength: Math.max(1, size) };
  // The type declarations do not know the option `info`.
  const { buffer, engine } = inflateSync(pack.subarray(from), options) as unknown as {
    readonly buffer: Buffer;
    readonly engine: { readonly bytesWritten: number };
  };
  if (buffer.length !== size) throw new Error("an object of the pack has a wrong size");
  return { content: buffer, end: from + engine.bytesWritten };
}

function plainObject(type: number, content: Buffer): PackObject {
  const name = types[type];
  if (!name) throw new Error(`objects of type ${type} are not supported`);
  return { type: name, content };
}

/** A delta copies ranges of its base, and inserts what is new. `spend` is called before memory is allocated. */
function applyDelta(base: PackObject | undefined, delta: Buffer, spend: (size: number) => void): PackObject {
  if (!base) throw new Error("a delta refers to an object that is not before it in the pack");
  const source = readSize(delta, 0);
  const target = readSize(delta, source.next);
  // A size with too many digits is not a number.
  const isAllowed = source.size === base.content.length && target.size <= maxObjectBytes;
  if (!isAllowed) throw wrongDelta();
  spend(target.size);
  const content = Buffer.alloc(target.size);
  let length = 0;
  for (let at = target.next; at < delta.length;) {
    const { from, offset, size, next } = readCommand(base.content, delta, at);
    if (size === 0 || offset + size > from.length || length + size > content.length) throw wrongDelta();
    from.copy(content, length, offset, offset + size);
    length += size;
    at = next;
  }
  if (length !== content.length) throw wrongDelta();
  return { type: base.type, content };
}

const wrongDelta = (): Error => new Error("a delta has a wrong size");

interface DeltaCommand {
  readonly from: Buffer;
  readonly offset: number;
  readonly size: number;
  readonly next: number;
}

function readCommand(base: Buffer, delta: Buffer, at: number): DeltaCommand {
  const command = byteAt(delta, at);
  if (command & 128) return { from: base, ...readCopy(delta, at + 1, command) };
  return { from: delta, offset: at + 1, size: command, next: at + 1 + command };
}

function readSize(delta: Buffer, from: number): { size: number; next: number } {
  let [at, size, factor] = [from, 0, 1];
  for (;;) {
    const byte = byteAt(delta, at++);
    size += (byte & 127) * factor;
    factor *= 128;
    if (!(byte & 128)) return { size, next: at };
  }
}

/** The bits of the command show which bytes of the offset and the size follow. */
function readCopy(delta: Buffer, from: number, command: number): { offset: number; size: number; next: number } {
  let [at, offset, size] = [from, 0, 0];
  for (let bit = 0; bit < 4; bit++) if (command & (1 << bit)) offset += byteAt(delta, at++) * 256 ** bit;
  for (let bit = 0; bit < 3; bit++) if (command & (16 << bit)) size += byteAt(delta, at++) * 256 ** bit;
  return { offset, size: size || 0x1_0000, next: at };
}

function objectId({ type, content }: PackObject, format: ObjectFormat): string {
  return createHash(format).update(`${type} ${content.length}\0`).update(content).digest("hex");
}
