/**
 * Unpacks a gzipped tar of files and folders, and nothing else: an artifact has no need of links, devices or sparse
 * files, so each of them refuses the whole. Written here rather than taken from a library because what matters is what
 * it does not do; the format's part is small.
 */
import { createReadStream } from "node:fs";
import { mkdir, open, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { done, failed, type Outcome } from "../outcome.ts";
import { quoteName } from "../system/clean-text.ts";
import { cleanRelative } from "../system/files.ts";

interface UnpackLimits {
  readonly maxBytes: number;
  readonly maxEntries: number;
  /** Unpacked bytes for each packed one, once more than `ratioFloorBytes` are unpacked. */
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
/** The longest extended header: a few long paths, not a place to hide a file. */
const maxExtendedBytes = 64 * 1024;

export async function untar(archive: string, folder: string, limits: UnpackLimits): Promise<Outcome<number>> {
  const packed = (await stat(archive)).size;
  const gunzip = createGunzip();
  // The reader meets the error of either; ending one ends both.
  pipeline(createReadStream(archive), gunzip, () => undefined);
  const reader = new TarReader(gunzip, packed, limits);
  try {
    let entries = 0;
    for (;;) {
      const header = await readHeader(reader);
      if (header === undefined) return done(entries);
      entries += 1;
      if (entries > limits.maxEntries) throw new Refused(`it holds more than ${limits.maxEntries} entries`);
      await unpack(reader, header, folder);
    }
  } catch (error) {
    if (error instanceof Refused) return failed("sourceRefused", `the artifact is refused: ${error.message}`);
    if (error instanceof Error && "code" in error && String(error.code).startsWith("Z_")) {
      return failed("sourceRefused", "the artifact is refused: it is not a gzipped tar");
    }
    throw error;
  } finally {
    reader.close();
  }
}

/** Thrown within this module only. */
class Refused extends Error {}

interface Header {
  readonly path: string;
  readonly size: number;
  readonly kind: "file" | "folder";
  readonly executable: boolean;
}

async function unpack(reader: TarReader, header: Header, folder: string): Promise<void> {
  const target = join(folder, header.path);
  if (header.kind === "folder") {
    await mkdir(target, { recursive: true });
    await reader.skip(padded(header.size));
    return;
  }
  if (header.path === ".") throw new Refused("a file has the name of the folder itself");
  await mkdir(dirname(target), { recursive: true }).catch(notAFolder(header.path));
  const file = await open(target, "w", header.executable ? 0o755 : 0o644).catch(notAFolder(header.path));
  try {
    for await (const chunk of reader.take(header.size)) await file.write(chunk);
  } finally {
    await file.close();
  }
  await reader.skip(padded(header.size) - header.size);
}

/** An archive that names one path as both a file and a folder. */
function notAFolder(path: string): (error: unknown) => never {
  return (error) => {
    throw new Refused(`${shown(path)} cannot be written`, { cause: error });
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
        return headerOf(bytes, extended, { kind: type === "5" ? "folder" : "file", size });
      case "x":
        Object.assign(extended, parsePax(await readExtended(reader, size)));
        break;
      case "L":
        extended.path = text(await readExtended(reader, size)).replace(/\0.*$/s, "");
        break;
      case "g":
        // Facts about the whole archive, such as the commit that `git archive` notes.
        await readExtended(reader, size);
        break;
      default:
        throw new Refused(`${shown(nameOf(bytes))} is ${describe(type)}`);
    }
  }
}

function headerOf(bytes: Buffer, extended: Extended, basic: { kind: Header["kind"]; size: number }): Header {
  const name = extended.path ?? nameOf(bytes);
  const path = cleanRelative(name);
  if (path === undefined || name.length > 4096) throw new Refused(`${shown(name)} leads out of its folder`);
  const size = basic.kind === "folder" ? 0 : (extended.size ?? basic.size);
  return { path, size, kind: basic.kind, executable: (readNumber(bytes.subarray(100, 108)) & 0o111) !== 0 };
}

function describe(type: string): string {
  if (type === "1" || type === "2") return "a link; links are not unpacked";
  if (type === "3" || type === "4" || type === "6") return "a device or a pipe";
  return "of a kind that is not unpacked";
}

async function readExtended(reader: TarReader, size: number): Promise<Buffer> {
  if (size > maxExtendedBytes) throw new Refused("an extended header is too long");
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
      throw new Refused("an extended header is broken");
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

function nameOf(bytes: Buffer): string {
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
    throw new Refused("a name is not UTF-8");
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
  if (!/^[0-7]+$/.test(digits)) throw new Refused("a header is broken");
  return checkedSize(Number.parseInt(digits, 8));
}

function checkedSize(value: number): number {
  if (!Number.isSafeInteger(value) || value < 0) throw new Refused("a size is not a number");
  return value;
}

function checkSum(bytes: Buffer): void {
  let sum = 8 * 0x20;
  for (const [index, byte] of bytes.entries()) if (index < 148 || index >= 156) sum += byte;
  if (sum !== readNumber(bytes.subarray(148, 156))) throw new Refused("a header's checksum is wrong");
}

function padded(size: number): number {
  return Math.ceil(size / block) * block;
}

function shown(path: string): string {
  return quoteName(path);
}

/** Bytes of the unpacked stream, counted as they come: a bomb is noticed before it is on disk. */
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
    if (this.#buffer.length < block) throw new Refused("it is cut off");
    return this.#cut(block);
  }

  async *take(size: number): AsyncGenerator<Uint8Array> {
    let left = size;
    while (left > 0) {
      if (this.#buffer.length === 0 && !(await this.#more())) throw new Refused("it is cut off");
      const chunk = this.#cut(Math.min(left, this.#buffer.length));
      left -= chunk.length;
      yield chunk;
    }
  }

  async skip(size: number): Promise<void> {
    for await (const _ of this.take(size));
  }

  #cut(length: number): Buffer {
    const cut = this.#buffer.subarray(0, length);
    this.#buffer = this.#buffer.subarray(length);
    return cut;
  }

  async #more(): Promise<boolean> {
    const next = await this.#chunks.next();
    if (next.done) return false;
    this.#unpacked += next.value.length;
    if (this.#unpacked > this.#limits.maxBytes) {
      throw new Refused(`it unpacks to more than ${this.#limits.maxBytes} bytes`);
    }
    if (this.#unpacked > Math.max(this.#limits.ratioFloorBytes, this.#packed * this.#limits.maxRatio)) {
      throw new Refused(`it unpacks to more than ${this.#limits.maxRatio} times its size`);
    }
    this.#buffer = this.#buffer.length === 0 ? next.value : Buffer.concat([this.#buffer, next.value]);
    return true;
  }
}
