/**
 * What waits to be sent to one page. A slow page does not make it grow: of an object only the newest state waits, and
 * when it is full, the sources wait, and with them the API server.
 */
import type { Change, StreamMessage } from "../shared/contract.ts";

interface Waiting {
  readonly message: StreamMessage;
  readonly text: string;
}

export class Outbox {
  /** In the order of sending. */
  readonly #waiting = new Map<string, Waiting>();
  readonly #maxChars: number;
  #chars = 0;
  #count = 0;
  #onChange = Promise.withResolvers<void>();

  constructor(maxChars: number) {
    this.#maxChars = maxChars;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  get isFull(): boolean {
    return this.#chars >= this.#maxChars;
  }

  /** Resolves when something was added or taken, or at `wake`. */
  async changed(): Promise<void> {
    await this.#onChange.promise;
  }

  wake(): void {
    this.#onChange.resolve();
    this.#onChange = Promise.withResolvers();
  }

  push(message: StreamMessage): void {
    if (message.type === "reset") this.#dropObjects(message.id);
    const key = keyOf(message) ?? `#${this.#count++}`;
    const merged = merge(this.#waiting.get(key)?.message, message);
    this.#remove(key);
    // It moves to the end: a page resumes after the last version that it received, so they must be sent in order.
    const text = JSON.stringify(merged);
    this.#waiting.set(key, { message: merged, text });
    this.#chars += text.length;
    this.wake();
  }

  /** The oldest messages as events, up to a size, but at least one; undefined if there are none. */
  take(maxChars: number): string | undefined {
    let events = "";
    for (const [key, { text }] of this.#waiting) {
      if (events !== "" && events.length + text.length > maxChars) break;
      events += `data: ${text}\n\n`;
      this.#remove(key);
    }
    if (events === "") return undefined;
    this.wake();
    return events;
  }

  #remove(key: string): void {
    this.#chars -= this.#waiting.get(key)?.text.length ?? 0;
    this.#waiting.delete(key);
  }

  #dropObjects(id: string): void {
    for (const [key, { message }] of this.#waiting) if (message.id === id) this.#remove(key);
  }
}

/** Messages with the same key replace each other. */
function keyOf(message: StreamMessage): string | undefined {
  switch (message.type) {
    case "object":
      return `${message.id} ${identityOf(message.object)}`;
    case "synced":
    case "reset":
    case "error":
      return `${message.id} ${message.type}`;
    case "line":
    case "end":
    case "denied":
      return undefined;
  }
}

function identityOf(object: unknown): string {
  const { metadata } = object as { metadata?: { uid?: string; namespace?: string; name?: string } };
  return metadata?.uid ?? `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
}

/** A page that has not seen the object yet must learn that it is new. */
function merge(waiting: StreamMessage | undefined, next: StreamMessage): StreamMessage {
  if (waiting?.type !== "object" || next.type !== "object") return next;
  const change: Change = waiting.change === "ADDED" && next.change === "MODIFIED" ? "ADDED" : next.change;
  return { ...next, change };
}
