/** Watched objects for components. Components that need the same objects share one subscription. */
import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import {
  limits,
  type StreamMessage,
  type Subscription,
  type WatchedResource,
  type WatchSubscription,
} from "../../shared/contract.ts";
import { Collection, type CollectionState, type ObjectMeta } from "../lib/collection.ts";
import { subscribe } from "./stream.ts";

export interface Scope {
  readonly namespace?: string;
  readonly name?: string;
  readonly labelSelector?: string;
}

export interface Watched<T> {
  readonly items: readonly T[];
  readonly state: CollectionState;
  /** A problem that is retried; empty if there is none. */
  readonly problem: string;
}

const nothing: Watched<never> = { items: [], state: { kind: "loading" }, problem: "" };

interface Entry {
  readonly collection: Collection<ObjectMeta>;
  readonly shown: Signal<Watched<ObjectMeta>>;
  users: number;
  unsubscribe: () => void;
}

/** Those that no page uses are in the order in which they were released. */
const entries = new Map<string, Entry>();
/** Long enough for several chunks of a long list, too short to notice. */
const flushMs = 100;
const largeFlushMs = 400;
const largeSize = 1000;
/** Going back to a page finds its objects still there. */
const keepMs = 60_000;
/** The server refuses a stream with more subscriptions than its limit. The rest is for logs, and for the next page. */
const keptSubscriptions = limits.subscriptionsPerStream - 8;

const keyOf = (resource: WatchedResource, { namespace, name, labelSelector }: Scope): string =>
  [resource, namespace, name, labelSelector].map((part) => part ?? "").join(" ");

let subscriptions = 0;
/** The server limits its length, so that it does not contain the scope. */
const nextId = (): string => `s${++subscriptions}`;

function acquire(resource: WatchedResource, scope: Scope): Entry {
  const key = keyOf(resource, scope);
  const known = entries.get(key);
  if (known) {
    known.users++;
    return known;
  }
  makeRoom();
  const collection = new Collection<ObjectMeta>();
  const shown = signal<Watched<ObjectMeta>>(nothing);
  const subscription: WatchSubscription = { id: nextId(), kind: "watch", resource, ...scope };
  const unsubscribe = subscribe(subscriberOf(subscription, collection, shown));
  const entry: Entry = { collection, shown, users: 1, unsubscribe };
  entries.set(key, entry);
  return entry;
}

function makeRoom(): void {
  for (const [key, entry] of entries) {
    if (entries.size < keptSubscriptions) return;
    if (entry.users === 0) drop(key, entry);
  }
}

function drop(key: string, entry: Entry): void {
  entries.delete(key);
  entry.unsubscribe();
}

function subscriberOf(
  subscription: WatchSubscription,
  collection: Collection<ObjectMeta>,
  shown: Signal<Watched<ObjectMeta>>,
) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = (): void => {
    timer = undefined;
    const { objects, state, problem } = collection;
    shown.value = { items: [...objects.values()], state, problem };
  };
  return {
    subscription,
    resourceVersion: () => collection.resourceVersion,
    reopened: () => collection.reopened(),
    receive: (message: StreamMessage) => {
      collection.receive(message);
      const isFirst = shown.peek() === nothing;
      const delay =
        isFirst || message.type === "synced" ? 0 : collection.objects.size > largeSize ? largeFlushMs : flushMs;
      if (message.type === "synced" || message.type === "denied") {
        clearTimeout(timer);
        timer = undefined;
      }
      timer ??= setTimeout(flush, delay);
    },
  };
}

/** Starts to watch what the page will need, and keeps it until the page uses it. */
export function prefetch(resource: WatchedResource, scope: Scope): void {
  acquire(resource, scope);
  release(keyOf(resource, scope));
}

function release(key: string): void {
  const entry = entries.get(key);
  if (!entry) return;
  entry.users--;
  entries.delete(key);
  entries.set(key, entry);
  setTimeout(() => {
    if (entry.users === 0 && entries.get(key) === entry) drop(key, entry);
  }, keepMs);
}

/** Forgets everything, for another user. */
export function forgetWatches(): void {
  for (const entry of entries.values()) entry.unsubscribe();
  entries.clear();
}

const empty = signal(nothing);

/** `scope` undefined: nothing is watched. */
export function useWatch<T extends ObjectMeta>(
  resource: WatchedResource,
  scope: Scope | undefined,
): ReadonlySignal<Watched<T>> {
  const key = scope && keyOf(resource, scope);
  const entry = useMemo(() => scope && acquire(resource, scope), [key]);
  useEffect(() => () => (key === undefined ? undefined : release(key)), [key]);
  return (entry?.shown ?? empty) as unknown as ReadonlySignal<Watched<T>>;
}

export interface WatchedLog {
  readonly lines: readonly string[];
  readonly ended: boolean;
  readonly denied?: string;
  readonly problem: string;
}

const noLog: WatchedLog = { lines: [], ended: false, problem: "" };
type LogTarget = Omit<Extract<Subscription, { kind: "log" }>, "id" | "kind">;

/** Undefined: no log is read. */
export function useLog(target: LogTarget | undefined): ReadonlySignal<WatchedLog> {
  const key = target && ["log", target.namespace, target.pod, target.container].join(" ");
  const log = useMemo(() => signal<WatchedLog>(noLog), [key]);
  useEffect(() => (target ? subscribe(logSubscriber(target, log)) : undefined), [key]);
  return log;
}

function logSubscriber(target: LogTarget, log: Signal<WatchedLog>) {
  // After a reconnect the server sends the log from its beginning.
  let lines: string[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const flush = (): void => {
    timer = undefined;
    log.value = { ...log.peek(), lines: [...lines], problem: "" };
  };
  return {
    subscription: { id: nextId(), kind: "log", ...target } as const,
    resourceVersion: () => undefined,
    reopened: () => {
      lines = [];
    },
    receive: (message: StreamMessage) => {
      if (message.type === "line") lines.push(message.text);
      else if (message.type === "end") log.value = { ...log.peek(), ended: true };
      else if (message.type === "denied") log.value = { ...log.peek(), denied: message.permission };
      else if (message.type === "error") log.value = { ...log.peek(), problem: message.message };
      timer ??= setTimeout(flush, flushMs);
    },
  };
}
