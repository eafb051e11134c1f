/**
 * Sends spans to a collector, in batches. Recording a span never waits: the queue is limited, and what does not fit is
 * dropped and counted. A span that others refer to takes the place of one that none refers to. A batch that cannot be sent is retried a few times, then dropped, so a collector that is down costs
 * only the memory of the queue.
 */
import { gzipSync } from "node:zlib";

import { processClock, type LogClock } from "../log/clock.ts";
import { otlpRequest, type Origin } from "./otlp.ts";
import type { TraceSettings } from "./settings.ts";
import type { Span } from "./span.ts";

/** Why spans are lost: the queue was full, the collector could not be reached, or it rejected them. */
export type DropReason = "queueFull" | "unreachable" | "rejected";

export interface SpanExporter {
  add(span: Span): void;
  /** Sends what is queued. Resolves when that has succeeded or failed, at the latest after `timeoutMs`. */
  flush(timeoutMs: number): Promise<void>;
}

export interface ExporterOptions {
  readonly settings: TraceSettings;
  readonly origin: Origin;
  readonly onExported: (count: number) => void;
  readonly onDropped: (reason: DropReason, count: number) => void;
  /** Called when the collector stops or starts to accept spans: `problem` is undefined if it accepts them. */
  readonly onState: (problem: string | undefined) => void;
  readonly clock?: LogClock;
  /** PEM of the collector's CA. */
  readonly ca?: string | undefined;
}

/** The pauses before the second and later attempts. */
const retryMs = [1000, 2000, 4000, 8000];
/** A collector that answers with one of these may accept the same request later. */
const retryable: ReadonlySet<number> = new Set([408, 429, 502, 503, 504]);

type Sent =
  | { readonly kind: "accepted"; readonly rejected: number }
  | { readonly kind: "rejected"; readonly problem: string }
  | { readonly kind: "retry"; readonly problem: string };

export function spanExporter(options: ExporterOptions): SpanExporter {
  return new Exporter(options);
}

class Exporter implements SpanExporter {
  readonly #options: ExporterOptions;
  readonly #clock: LogClock;
  #queue: Span[] = [];
  #cancelTimer: (() => void) | undefined;
  #sending: Promise<void> | undefined;
  #problem: string | undefined;
  /** No retries from here on: the process ends. */
  #isEnding = false;

  constructor(options: ExporterOptions) {
    this.#options = options;
    this.#clock = options.clock ?? processClock;
  }

  add(span: Span): void {
    const { queueSize, batchSize } = this.#options.settings;
    const isFull = this.#queue.length >= queueSize;
    if (isFull) this.#options.onDropped("queueFull", 1);
    if (isFull && !(span.isParent && this.#dropLeaf())) return;
    this.#queue.push(span);
    if (this.#queue.length >= batchSize) this.#send();
    else this.#schedule();
  }

  /** Removes the newest span that is no parent, if there is one. */
  #dropLeaf(): boolean {
    const index = this.#queue.findLastIndex(({ isParent }) => !isParent);
    return index >= 0 && this.#queue.splice(index, 1).length > 0;
  }

  async flush(timeoutMs: number): Promise<void> {
    this.#isEnding = true;
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(timeoutMs, resolve);
    this.#send();
    await Promise.race([this.#sending, late]);
    cancel();
    this.#isEnding = false;
  }

  #schedule(): void {
    if (this.#sending) return;
    this.#cancelTimer ??= this.#clock.after(this.#options.settings.delayMs, () => this.#send());
  }

  #send(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#sending ??= this.#sendAll();
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, this.#options.settings.batchSize);
      await this.#sendBatch(batch);
    }
    this.#sending = undefined;
  }

  async #sendBatch(batch: readonly Span[]): Promise<void> {
    const { origin, onDropped, onExported } = this.#options;
    const body = JSON.stringify(otlpRequest(batch, origin));
    let sent = await this.#post(body);
    for (const pauseMs of retryMs) {
      if (sent.kind !== "retry" || this.#isEnding) break;
      this.#report(sent.problem);
      await new Promise<void>((resolve) => void this.#clock.after(pauseMs, resolve));
      sent = await this.#post(body);
    }
    if (sent.kind !== "accepted") {
      this.#report(sent.problem);
      return onDropped(sent.kind === "retry" ? "unreachable" : "rejected", batch.length);
    }
    this.#report(undefined);
    if (sent.rejected > 0) onDropped("rejected", sent.rejected);
    onExported(batch.length - sent.rejected);
  }

  async #post(body: string): Promise<Sent> {
    const { settings, ca } = this.#options;
    try {
      const response = await fetch(settings.url, {
        method: "POST",
        headers: {
          ...settings.headers,
          "content-type": "application/json",
          ...(settings.isCompressed && { "content-encoding": "gzip" }),
        },
        body: settings.isCompressed ? gzipSync(body) : body,
        signal: AbortSignal.timeout(settings.timeoutMs),
        redirect: "error",
        ...(ca !== undefined && { tls: { ca } }),
      });
      const text = await response.text();
      if (response.ok) return { kind: "accepted", rejected: rejectedSpans(text) };
      const problem = `the collector responded with HTTP ${response.status}`;
      return { kind: retryable.has(response.status) ? "retry" : "rejected", problem };
    } catch (error) {
      return { kind: "retry", problem: error instanceof Error ? error.message : String(error) };
    }
  }

  #report(problem: string | undefined): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#options.onState(problem);
  }
}

/** Of a response that reports a partial success. */
function rejectedSpans(text: string): number {
  try {
    const { partialSuccess } = JSON.parse(text) as { partialSuccess?: { rejectedSpans?: number | string } };
    return Number(partialSuccess?.rejectedSpans ?? 0) || 0;
  } catch {
    return 0;
  }
}
