/**
 * Events: what happened to an object, for users of `kubectl describe` and `kubectl get events`.
 *
 * Written as core/v1, not events.k8s.io/v1. Both are stored as the same objects and kubectl shows both, but only with
 * core/v1's `lastTimestamp` and `count` do `--sort-by=.lastTimestamp`, "x5 over 10m" in `describe` and common dashboards work.
 *
 * `record` returns immediately and never fails: a reconcile does not depend on its events. An event that repeats within
 * the window increases the count of the existing Event. Each object has an allowance of writes; beyond it events are only
 * counted, and a later write of the same event updates the count.
 */
import type { ObjectReference } from "kubernetes-types/core/v1";
import type { Client } from "../client/client.ts";
import { systemClock, type Clock } from "../clock.ts";
import { isNotFound } from "../client/errors.ts";
import { eventResource, newEvent, repeatedEvent, type EventDetails } from "./event-object.ts";
import { NotLeaderError } from "../leader/leadership.ts";
import { silentLogger, type Logger } from "./log.ts";
import { metricsRegistry, type Counter, type Registry } from "./metrics.ts";
import type { KubeObject } from "../resource.ts";
import { tokenBucket, type TokenBucket } from "./token-bucket.ts";

export interface EventNote {
  readonly type: "Normal" | "Warning";
  /** For machines: one word in CamelCase. */
  readonly reason: string;
  /** For people. Truncated to 1,024 bytes. */
  readonly message: string;
}

export interface EventRecorder {
  record(object: KubeObject, note: EventNote): void;
  /** Resolves when everything recorded has been written or dropped. */
  flush(): Promise<void>;
}

export interface EventRecorderOptions {
  /** A fenced client, if there is leader election. */
  readonly client: Client;
  /** The reporting component, shown as the event's source. */
  readonly component: string | ((about: ObjectReference) => string);
  readonly instance?: string;
  /** Masks known secrets. An event for which it throws is dropped. */
  readonly redact?: (text: string) => string;
  /** Identical events within this time become one. */
  readonly windowMs?: number;
  /** The initial number of writes for an object, and the time until it gets another. client-go uses 25 and 5 minutes. */
  readonly allowance?: { readonly burst: number; readonly refillMs: number };
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

export function eventRecorder(options: EventRecorderOptions): EventRecorder {
  return new Recorder(options);
}

const defaultAllowance = { burst: 25, refillMs: 5 * 60_000 };
/** Memory limits: events remembered for their count, objects remembered for their allowance, unwritten events. */
const maximum = { remembered: 2000, objects: 2000, pending: 500 };
/** An event is not worth a longer wait. */
const writeTimeoutMs = 10_000;

interface Entry {
  readonly about: ObjectReference;
  readonly note: EventNote;
  readonly firstAt: number;
  /** On the monotonic clock: until then, repetitions are counted. */
  readonly aggregatedUntil: number;
  /** Absent until the Event is created. */
  name?: string;
  lastAt: number;
  count: number;
}

type Fate = "written" | "limited" | "overflow" | "unsafe" | "failed";

class Recorder implements EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #fates: Counter<"fate">;
  readonly #windowMs: number;
  /** In the order of their last use, the oldest first. */
  readonly #entries = new Map<string, Entry>();
  readonly #allowances = new Map<string, TokenBucket>();
  readonly #pending = new Set<Entry>();
  #writing: Promise<void> | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = options.log ?? silentLogger;
    this.#windowMs = options.windowMs ?? 10 * 60_000;
    this.#fates = (options.metrics ?? metricsRegistry()).counter({
      name: "events_total",
      help: "Events of the operator by what happened to them.",
      labels: ["fate"],
    });
  }

  record(object: KubeObject, note: EventNote): void {
    try {
      const entry = this.#entryFor(objectReference(object), this.#safe(note));
      if (!this.#allowanceFor(entry.about).take()) return this.#count("limited");
      if (!this.#pending.has(entry) && this.#pending.size >= maximum.pending) return this.#count("overflow");
      this.#pending.add(entry);
      this.#writing ??= this.#writeAll();
    } catch (error) {
      this.#count("unsafe");
      this.#log.warn("event dropped", { error, reason: note.reason });
    }
  }

  async flush(): Promise<void> {
    await this.#writing;
  }

  #safe(note: EventNote): EventNote {
    const { redact = (text: string) => text } = this.#options;
    return { type: note.type, reason: note.reason, message: truncateBytes(redact(note.message), 1024) };
  }

  /** The existing entry with an increased count, or a new one. */
  #entryFor(about: ObjectReference, note: EventNote): Entry {
    const now = this.#clock.now();
    const monotonic = this.#clock.monotonic();
    const id = JSON.stringify([objectIdentity(about), note.type, note.reason, note.message]);
    const known = this.#entries.get(id);
    this.#entries.delete(id);
    const aggregatedUntil = monotonic + this.#windowMs;
    const isRepeated = known !== undefined && monotonic < known.aggregatedUntil;
    const entry = isRepeated ? known : { about, note, firstAt: now, aggregatedUntil, lastAt: now, count: 0 };
    entry.count++;
    entry.lastAt = now;
    this.#entries.set(id, entry);
    dropOldest(this.#entries, maximum.remembered);
    return entry;
  }

  #allowanceFor(about: ObjectReference): TokenBucket {
    const id = objectIdentity(about);
    const { burst, refillMs } = this.#options.allowance ?? defaultAllowance;
    const bucket = this.#allowances.get(id) ?? tokenBucket({ burst, refillMs, clock: this.#clock });
    this.#allowances.delete(id);
    this.#allowances.set(id, bucket);
    dropOldest(this.#allowances, maximum.objects);
    return bucket;
  }

  /** One write at a time: repetitions in the meantime are counted and written once. */
  async #writeAll(): Promise<void> {
    // Asynchronously, so that several events of one reconcile become one write.
    await Promise.resolve();
    for (const entry of this.#pending) {
      this.#pending.delete(entry);
      this.#count(await this.#write(entry));
    }
    this.#writing = undefined;
  }

  async #write(entry: Entry): Promise<Fate> {
    try {
      if (entry.name === undefined || !(await this.#repeat(entry, entry.name))) await this.#create(entry);
      return "written";
    } catch (error) {
      if (!(error instanceof NotLeaderError)) this.#log.warn("event could not be written", { error });
      return "failed";
    }
  }

  async #create(entry: Entry): Promise<void> {
    const { instance } = this.#options;
    const component = this.#componentFor(entry.about);
    const event = newEvent(eventDetails(entry), { component, ...(instance !== undefined && { instance }) });
    await this.#options.client.create(eventResource, event, { timeoutMs: writeTimeoutMs });
    entry.name = event.metadata.name;
  }

  #componentFor(about: ObjectReference): string {
    const { component } = this.#options;
    return typeof component === "string" ? component : component(about);
  }

  /** False if the Event no longer exists: the API server deletes events after an hour. */
  async #repeat(entry: Entry, name: string): Promise<boolean> {
    const ref = { namespace: entry.about.namespace ?? "default", name };
    const patch = { type: "merge", body: repeatedEvent(eventDetails(entry)) } as const;
    try {
      await this.#options.client.patch(eventResource, ref, { patch, timeoutMs: writeTimeoutMs });
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  #count(fate: Fate): void {
    this.#fates.increment({ fate });
  }
}

function eventDetails(entry: Entry): EventDetails {
  const { about, note, firstAt, lastAt, count } = entry;
  return { about, ...note, firstAt, lastAt, count };
}

function objectReference(object: KubeObject): ObjectReference {
  const { name, namespace, uid, resourceVersion } = object.metadata;
  return {
    apiVersion: object.apiVersion,
    kind: object.kind,
    ...(name !== undefined && { name }),
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  };
}

/** Without the version: the same event may repeat after the object has changed. */
function objectIdentity({ apiVersion, kind, namespace, name, uid }: ObjectReference): string {
  return uid ?? JSON.stringify([apiVersion, kind, namespace, name]);
}

function dropOldest(map: Map<string, unknown>, limit: number): void {
  for (const key of map.keys()) {
    if (map.size <= limit) return;
    map.delete(key);
  }
}

/** Truncates the text between characters. */
export function truncateBytes(text: string, limit: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= limit) return text;
  const mark = "…";
  let end = limit - new TextEncoder().encode(mark).length;
  // A byte that starts with the bits 10 continues a character.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return new TextDecoder().decode(bytes.subarray(0, end)) + mark;
}
