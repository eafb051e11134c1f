/** A run's events: appended with a sequence number, added to the progress, and read from any number on. */
import { open, type FileHandle } from "node:fs/promises";
import { addEvent, noProgress, type NumberedEvent, type Progress, type RunEvent } from "@pko/records";
import type { RunFolder, StoredEvent } from "./run-folder.ts";
import { LineSplitter, openIfExists } from "./tail.ts";

/** Events are small, so a longer line was not written by this module. */
const maxLineBytes = 256 * 1024;
const chunkBytes = 64 * 1024;

export class EventLog {
  readonly #folder: RunFolder;
  readonly #onEvent: (event: NumberedEvent) => void;
  #file: FileHandle | undefined;
  #lastSeq = 0;
  #progress: Progress = noProgress;
  #origin: StoredEvent["origin"];
  #grown = Promise.withResolvers<void>();
  #writing: Promise<void> = Promise.resolve();

  private constructor(folder: RunFolder, onEvent: (event: NumberedEvent) => void) {
    this.#folder = folder;
    this.#onEvent = onEvent;
  }

  /** Reads the events of an earlier agent process. `onEvent` is called for new events only. */
  static async open(folder: RunFolder, onEvent: (event: NumberedEvent) => void = () => undefined): Promise<EventLog> {
    const log = new EventLog(folder, onEvent);
    for await (const stored of new EventReader(folder).more()) {
      log.#lastSeq = stored.seq;
      log.#progress = addEvent(log.#progress, stored.event);
      log.#origin = stored.origin ?? log.#origin;
    }
    return log;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  get progress(): Progress {
    return this.#progress;
  }

  /** The last event of an engine log that was appended. */
  get origin(): StoredEvent["origin"] {
    return this.#origin;
  }

  /** Resolves when there are new events or the log is closed. */
  get grown(): Promise<void> {
    return this.#grown.promise;
  }

  async append(event: RunEvent, origin?: StoredEvent["origin"]): Promise<void> {
    const seq = this.#lastSeq + 1;
    this.#lastSeq = seq;
    const stored: StoredEvent = {
      type: "event",
      seq,
      time: new Date().toISOString(),
      event,
      ...(origin && { origin }),
    };
    // Concurrent calls write one after the other.
    const before = this.#writing;
    const write = async (): Promise<void> => {
      await before;
      try {
        this.#file ??= await openForAppending(this.#folder.events);
        await this.#file.write(`${JSON.stringify(stored)}\n`);
      } catch {
        // A full disk loses an event, but does not fail the run.
      }
      // After it is on disk, because an agent that crashed before would use the number again.
      this.#onEvent({ seq, time: stored.time, event });
      this.#progress = addEvent(this.#progress, event);
      this.#origin = origin ?? this.#origin;
      this.wake();
    };
    this.#writing = write();
    await this.#writing;
  }

  wake(): void {
    const { resolve } = this.#grown;
    this.#grown = Promise.withResolvers<void>();
    resolve();
  }

  async close(): Promise<void> {
    await this.#writing;
    await this.#file?.close();
    this.#file = undefined;
    this.wake();
  }
}

/** Starts a new line after one that a crash left incomplete. */
async function openForAppending(path: string): Promise<FileHandle> {
  const file = await open(path, "a+", 0o600);
  const { size } = await file.stat();
  if (size > 0) {
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
    if (buffer[0] !== 0x0a) await file.write("\n");
  }
  return file;
}

/** Reads the events on disk; each call of `more` returns the new ones. */
export class EventReader {
  readonly #folder: RunFolder;
  readonly #splitter = new LineSplitter(maxLineBytes);
  #position = 0;

  constructor(folder: RunFolder) {
    this.#folder = folder;
  }

  async *more(): AsyncGenerator<StoredEvent> {
    const file = await openIfExists(this.#folder.events);
    if (!file) return;
    try {
      const buffer = Buffer.alloc(chunkBytes);
      for (;;) {
        const { bytesRead } = await file.read(buffer, 0, chunkBytes, this.#position);
        if (bytesRead === 0) return;
        this.#position += bytesRead;
        for (const line of this.#splitter.split(buffer.subarray(0, bytesRead))) {
          const stored = line.kind === "line" ? parseStored(line.text) : undefined;
          if (stored) yield stored;
        }
      }
    } finally {
      await file.close();
    }
  }
}

/** Ignores a line that a crash left incomplete. */
function parseStored(line: string): StoredEvent | undefined {
  try {
    // Written by this module, in a folder that only the agent uses.
    const stored = JSON.parse(line) as StoredEvent;
    return stored.type === "event" ? stored : undefined;
  } catch {
    return undefined;
  }
}
