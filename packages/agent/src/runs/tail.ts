/** Follows a file that another process writes: complete lines with a limit, up to the end of the file. */
import { open, type FileHandle } from "node:fs/promises";
import { pause } from "@pko/rpc";
import { hasCode } from "../system/files.ts";

type TailedLine =
  { readonly kind: "line"; readonly text: string } | { readonly kind: "tooLong"; readonly bytes: number };
/** The writer has started the file again. Its lines follow from the first one on. */
type Rewritten = { readonly kind: "rewritten" };

interface TailOptions {
  readonly path: string;
  readonly maxLineBytes: number;
  /** The interval while the file grows; for an unchanged file it increases up to ten times. */
  readonly pollMs: number;
  /** Aborted when the writer has exited and the file is complete. */
  readonly over: AbortSignal;
  /** Whether to return a last line without a line break. */
  readonly keepsLast?: boolean;
}

const newline = 0x0a;
const chunkBytes = 64 * 1024;

/** For a file that its writer only appends to. */
export async function* tailLines(options: TailOptions): AsyncGenerator<TailedLine> {
  for await (const line of tailRewritten(options)) if (line.kind !== "rewritten") yield line;
}

/** For a file that its writer may truncate and write again. */
export async function* tailRewritten(options: TailOptions): AsyncGenerator<TailedLine | Rewritten> {
  let file: FileHandle | undefined;
  let splitter = new LineSplitter(options.maxLineBytes);
  let part = new ReadPart();
  let pauseMs = options.pollMs;
  try {
    for (;;) {
      // Check before reading, so that everything written before the end is read.
      const isOver = options.over.aborted;
      file ??= await openIfExists(options.path);
      for (;;) {
        const chunk = file && (await part.more(file));
        if (chunk === undefined) break;
        pauseMs = options.pollMs;
        if (chunk !== "rewritten") {
          yield* splitter.split(chunk);
          continue;
        }
        [splitter, part] = [new LineSplitter(options.maxLineBytes), new ReadPart()];
        yield { kind: "rewritten" };
      }
      if (isOver) {
        if (options.keepsLast) yield* splitter.rest();
        return;
      }
      await pause(pauseMs, options.over);
      pauseMs = Math.min(pauseMs * 1.2, options.pollMs * 10);
    }
  } finally {
    await file?.close();
  }
}

/**
 * The part of a file that has been read. A file that was started again may have grown beyond its former size since, so
 * each read includes the end of this part: if it differs, the file is another one.
 */
class ReadPart {
  readonly #buffer = Buffer.alloc(chunkBytes);
  #position = 0;
  #last = Buffer.alloc(0);

  /** The next bytes; undefined if there are none yet. */
  async more(file: FileHandle): Promise<Buffer | "rewritten" | undefined> {
    const known = this.#last.length;
    const { bytesRead } = await file.read(this.#buffer, 0, chunkBytes, this.#position - known);
    if (!this.#buffer.subarray(0, Math.min(known, bytesRead)).equals(this.#last)) return "rewritten";
    if (bytesRead === known) return undefined;
    this.#position += bytesRead - known;
    this.#last = Buffer.from(this.#buffer.subarray(Math.max(0, bytesRead - comparedBytes), bytesRead));
    return this.#buffer.subarray(known, bytesRead);
  }
}

/** Enough for an event's URN and sequence number. */
const comparedBytes = 1024;

export async function openIfExists(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, "r");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

/** Splits chunks into lines; of a line beyond the limit only the length is kept. */
export class LineSplitter {
  readonly #max: number;
  #pending: Buffer[] = [];
  #bytes = 0;

  constructor(max: number) {
    this.#max = max;
  }

  *split(chunk: Buffer): Generator<TailedLine> {
    let start = 0;
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      this.#keep(chunk.subarray(start, end));
      yield this.#take();
      start = end + 1;
    }
    this.#keep(chunk.subarray(start));
  }

  /** The text after the last line break. */
  *rest(): Generator<TailedLine> {
    if (this.#bytes > 0) yield this.#take();
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#max) this.#pending = [];
    else if (part.length > 0) this.#pending.push(Buffer.from(part));
  }

  #take(): TailedLine {
    const bytes = this.#bytes;
    const text = bytes > this.#max ? "" : new TextDecoder().decode(Buffer.concat(this.#pending));
    this.#pending = [];
    this.#bytes = 0;
    return bytes > this.#max ? { kind: "tooLong", bytes } : { kind: "line", text };
  }
}
