/** Follows a file that another process writes: complete lines with a limit, up to the end of the file. */
import { open, type FileHandle } from "node:fs/promises";
import { pause } from "@pko/rpc";
import { hasCode } from "../system/files.ts";

type TailedLine =
  { readonly kind: "line"; readonly text: string } | { readonly kind: "tooLong"; readonly bytes: number };

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

export async function* tailLines(options: TailOptions): AsyncGenerator<TailedLine> {
  let file: FileHandle | undefined;
  const splitter = new LineSplitter(options.maxLineBytes);
  const buffer = Buffer.alloc(chunkBytes);
  let pauseMs = options.pollMs;
  try {
    for (;;) {
      // Check before reading, so that everything written before the end is read.
      const isOver = options.over.aborted;
      file ??= await openIfExists(options.path);
      for (;;) {
        const bytesRead = file ? (await file.read(buffer, 0, chunkBytes)).bytesRead : 0;
        if (bytesRead === 0) break;
        yield* splitter.split(buffer.subarray(0, bytesRead));
        pauseMs = options.pollMs;
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
