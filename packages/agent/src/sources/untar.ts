/**
 * Unpacks a gzipped tar of files and folders. An artifact needs no links, devices or sparse files, so an archive with one
 * of them is rejected. This is our own code instead of a library, because it must do as little as possible and the format
 * is simple.
 */
import { createReadStream } from "node:fs";
import { mkdir, open, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { done, failed, type Outcome } from "../outcome.ts";
import { quoteName } from "../system/clean-text.ts";
import { hasCode, normalizeRelative } from "../system/files.ts";

interface UnpackLimits {
  readonly maxBytes: number;
  readonly maxEntries: number;
  /** Unpacked bytes per packed byte. Checked after `ratioFloorBytes` unpacked bytes. */
  readonly maxRatio: number;
  readonly ratioFloorBytes: number;
}

export const defaultLimits: UnpackLimits = {
  maxBytes: 100 * 1024 * 1024,
  maxEntries: 50_000,
  maxRatio: 200,
  ratioFloorBytes: 16 * 1024 * 1024,
};

const block = 512;
/** The limit for an extended header, which contains only a few paths. */
const maxExtendedBytes = 64 * 1024;

export async function untar(archive: string, folder: string, limits: UnpackLimits): Promise<Outcome<number>> {
  const packed = (await stat(archive)).size;
  const gunzip = createGunzip();
  // The reader gets the errors of both streams, and closing one closes both.
  pipeline(createReadStream(archive), gunzip, () => undefined);
  const reader = new TarReader(gunzip, packed, limits);
  try {
    let entries = 0;
    for (;;) {
      const header = await readHeader(reader);
      if (header === undefined) {
        await reader.drain();
        return done(entries);
      }
      entries += 1;
      if (entries > limits.maxEntries) throw new Rejected(`it has more than ${limits.maxEntries} entries`);
      await unpack(reader, header, folder);
    }
  } catch (error) {
    if (error instanceof Rejected) return failed("sourceRefused", `the artifact is rejected: ${error.message}`);
    if (error instanceof Error && "code" in error && String(error.code).startsWith("Z_")) {
      return failed("sourceRefused", "the artifact is rejected: it is not a gzipped tar");
    }
    throw error;
  } finally {
    reader.close();
  }
}

/** Thrown within this module only. */
class Rejected extends Error {}

interface Header {
  readonly path: string;
  readonly size: number;
  readonly kind: "file" | "folder";
  readonly executable: boolean;
}

async function unpack(reader: TarReader, header: Header, folder: string): Promise<void> {
  const target = join(folder, header.path);
  if (header.kind === "folder") {
    await mkdir(target, { recursive: true }).catch(rejectPath(header.path));
    await reader.skip(padded(header.size));
    return;
  }
  if (header.path === ".") throw new Rejected("a file has the name of the root folder");
  await mkdir(dirname(target), { recursive: true }).catch(rejectPath(header.path));
  const file = await open(target, "w", header.executable ? 0o755 : 0o644).catch(rejectPath(header.path));
  try {
    for await (const chunk of reader.take(header.size)) await file.write(chunk);
  } finally {
    await file.close();
  }
  await reader.skip(padded(header.size) - header.size);
}

/** A path that cannot be created is a mistake of the archive; a full disk is not. */
function rejectPath(path: string): (error: unknown) => never {
  return (error) => {
    if (hasCode(error, "EEXIST", "EISDIR", "ENOTDIR"))
      throw new Rejected(`${quoteName(path)} is both a file and a folder`, { cause: error });
    if (hasCode(error, "ENAMETOOLONG"))
      throw new Rejected(`the path ${quoteName(path)} has a name that is too long`, { cause: error });
    throw error;
  };
}

interface Extended {
  path?: string;
  size?: number;
}

async function readHeader(reader: TarReader): Promise<Header | undefined> {
  const extended: Extended = {};
  for (;;) {
    const bytes = await reader.readBlock();
    if (bytes === undefined || bytes.every((byte) => byte === 0)) return undefined;
    checkSum(bytes);
    const type = String.fromCharCode(bytes[156] ?? 0);
    const size = readNumber(bytes.subarray(124, 136));
    switch (type) {
      case "0":
      case "\0":
      case "5":
        return parseHeader(bytes, extended, { kind: type === "5" ? "folder" : "file", size });
      case "x":
        Object.assign(extended, parsePax(await readExtended(reader, size)));
        break;
      case "L":
        extended.path = text(await readExtended(reader, size)).replace(/\0.*$/s, "");
        break;
      case "g":
        // Metadata of the whole archive, such as the commit from `git archive`.
        await readExtended(reader, size);
        break;
      default:
        throw new Rejected(`${quoteName(entryName(bytes))} is ${describe(type)}`);
    }
  }
}

function parseHeader(bytes: Buffer, extended: Extended, basic: { kind: Header["kind"]; size: number }): Header {
  const name = extended.path ?? entryName(bytes);
  const path = normalizeRelative(name);
  if (path === undefined || name.length > 4096)
    throw new Rejected(`the path ${quoteName(name)} points outside the artifact`);
  const size = basic.kind === "folder" ? 0 : (extended.size ?? basic.size);
  return { path, size, kind: basic.kind, executable: (readNumber(bytes.subarray(100, 108)) & 0o111) !== 0 };
}

function describe(type: string): string {
  if (type === "1" || type === "2") return "a link; links are not allowed";
  if (type === "3" || type === "4" || type === "6") return "a device or a pipe, which is not allowed";
  return "an entry of a type that is not allowed";
}

async function readExtended(reader: TarReader, size: number): Promise<Buffer> {
  if (size > maxExtendedBytes) throw new Rejected("an extended header is too long");
  const chunks: Uint8Array[] = [];
  for await (const chunk of reader.take(size)) chunks.push(chunk);
  await reader.skip(padded(size) - size);
  return Buffer.concat(chunks);
}

/** Records of the form "<length> <key>=<value>\n". */
function parsePax(bytes: Buffer): Extended {
  const found: Extended = {};
  let rest = bytes;
  while (rest.length > 0) {
    const space = rest.indexOf(0x20);
    const length = Number(rest.subarray(0, space).toString("latin1"));
    if (space < 1 || !Number.isInteger(length) || length <= space || length > rest.length) {
      throw new Rejected("an extended header is invalid");
    }
    const record = text(rest.subarray(space + 1, length - 1));
    const equals = record.indexOf("=");
    const value = record.slice(equals + 1);
    if (record.slice(0, equals) === "path") found.path = value;
    if (record.slice(0, equals) === "size") found.size = checkedSize(Number(value));
    rest = rest.subarray(length);
  }
  return found;
}

function entryName(bytes: Buffer): string {
  const name = field(bytes, 0, 100);
  const prefix = bytes.subarray(257, 262).toString("latin1") === "ustar" ? field(bytes, 345, 500) : "";
  return prefix === "" ? name : `${prefix}/${name}`;
}

function field(bytes: Buffer, start: number, end: number): string {
  const slice = bytes.subarray(start, end);
  const zero = slice.indexOf(0);
  return text(zero < 0 ? slice : slice.subarray(0, zero));
}

function text(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Rejected("a name is not UTF-8");
  }
}

/** Octal digits, or a binary number where the first bit is set. */
function readNumber(bytes: Buffer): number {
  if (((bytes[0] ?? 0) & 0x80) !== 0) {
    let value = (bytes[0] ?? 0) & 0x7f;
    for (const byte of bytes.subarray(1)) value = value * 256 + byte;
    return checkedSize(value);
  }
  const digits = bytes.toString("latin1").replaceAll("\0", " ").trim();
  if (digits === "") return 0;
  if (!/^[0-7]+$/.test(digits)) throw new Rejected("a header is invalid");
  return checkedSize(Number.parseInt(digits, 8));
}

function checkedSize(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new Rejected("a size is not a valid number");
  return value;
}

function checkSum(bytes: Buffer): void {
  let sum = 8 * 0x20;
  for (const [index, byte] of bytes.entries()) if (index < 148 || index >= 156) sum += byte;
  if (sum !== readNumber(bytes.subarray(148, 156))) throw new Rejected("a header's checksum is wrong");
}

function padded(size: number): number {
  return Math.ceil(size / block) * block;
}

/** Reads and counts unpacked bytes, so that a decompression bomb is detected before it is written to disk. */
class TarReader {
  readonly #chunks: AsyncIterator<Buffer>;
  readonly #source: { destroy(): void };
  readonly #packed: number;
  readonly #limits: UnpackLimits;
  #buffer: Buffer = Buffer.alloc(0);
  #unpacked = 0;

  constructor(source: AsyncIterable<Buffer> & { destroy(): void }, packed: number, limits: UnpackLimits) {
    this.#chunks = source[Symbol.asyncIterator]();
    this.#source = source;
    this.#packed = packed;
    this.#limits = limits;
  }

  close(): void {
    this.#source.destroy();
  }

  /** The next 512 bytes; undefined at the end of the archive. */
  async readBlock(): Promise<Buffer | undefined> {
    while (this.#buffer.length < block) if (!(await this.#more())) break;
    if (this.#buffer.length === 0) return undefined;
    if (this.#buffer.length < block) throw new Rejected("it is truncated");
    return this.#consume(block);
  }

  async *take(size: number): AsyncGenerator<Uint8Array> {
    let left = size;
    while (left > 0) {
      if (this.#buffer.length === 0 && !(await this.#more())) throw new Rejected("it is truncated");
      const chunk = this.#consume(Math.min(left, this.#buffer.length));
      left -= chunk.length;
      yield chunk;
    }
  }

  async skip(size: number): Promise<void> {
    for await (const _ of this.take(size));
  }

  /** Reads to the end, where the checksum of the gzip is. */
  async drain(): Promise<void> {
    do this.#buffer = Buffer.alloc(0);
    while (await this.#more());
  }

  #consume(length: number): Buffer {
    const consumed = this.#buffer.subarray(0, length);
    this.#buffer = this.#buffer.subarray(length);
    return consumed;
  }

  async #more(): Promise<boolean> {
    const next = await this.#chunks.next();
    if (next.done) return false;
    this.#unpacked += next.value.length;
    if (this.#unpacked > this.#limits.maxBytes) {
      throw new Rejected(`it unpacks to more than ${this.#limits.maxBytes} bytes`);
    }
    if (this.#unpacked > Math.max(this.#limits.ratioFloorBytes, this.#packed * this.#limits.maxRatio)) {
      throw new Rejected(`it unpacks to more than ${this.#limits.maxRatio} times its size`);
    }
    this.#buffer = this.#buffer.length === 0 ? next.value : Buffer.concat([this.#buffer, next.value]);
    return true;
  }
}
