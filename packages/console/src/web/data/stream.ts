/** The one stream of this tab. It is opened again when subscriptions change, after an error, and after a sleep. */
import { batch, effect, signal } from "@preact/signals";

import { encodeSubscriptions, type StreamMessage, type Subscription } from "../../shared/contract.ts";
import { isSilent, resumed, retryDelay } from "../lib/reconnect.ts";
import { parseSse } from "../lib/sse.ts";
import { errorText, isSignedOutByProxy, loadSession, messageIn, session } from "./api.ts";

export interface Subscriber {
  readonly subscription: Subscription;
  /** Where a watch continues. */
  readonly resourceVersion: () => string | undefined;
  readonly reopened: () => void;
  readonly receive: (message: StreamMessage) => void;
}

export type Connection = "idle" | "connecting" | "live" | "lost";
export const connection = signal<Connection>("idle");
/** Why the server refuses the stream; empty if it does not, or does not say. */
export const connectionProblem = signal("");

const subscribers = new Map<string, Subscriber>();
/** Views that are replaced unsubscribe and subscribe at the same time: one new stream serves both. */
const settleMs = 20;
const checkMs = 5000;

let controller: AbortController | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
let failures = 0;
let lastHeard = 0;

export function subscribe(subscriber: Subscriber): () => void {
  const { id } = subscriber.subscription;
  subscribers.set(id, subscriber);
  scheduleOpen(settleMs);
  return () => {
    if (subscribers.get(id) !== subscriber) return;
    subscribers.delete(id);
    scheduleOpen(settleMs);
  };
}

function scheduleOpen(delayMs: number): void {
  clearTimeout(timer);
  timer = setTimeout(() => void open(), delayMs);
}

async function open(): Promise<void> {
  controller?.abort();
  if (subscribers.size === 0) {
    connection.value = "idle";
    return;
  }
  const own = new AbortController();
  controller = own;
  lastHeard = Date.now();
  if (connection.peek() !== "lost") connection.value = "connecting";
  const problem = await readToEnd(own.signal);
  if (own.signal.aborted) return;
  if (session.peek()?.signedIn !== true) {
    connection.value = "idle";
    return;
  }
  failures++;
  connection.value = "lost";
  connectionProblem.value = problem;
  scheduleOpen(retryDelay(failures));
}

/** Whatever the reason is, the stream is opened again. Returns it if the server has refused the stream. */
async function readToEnd(signal: AbortSignal): Promise<string> {
  try {
    await read(signal);
  } catch (error) {
    return error instanceof Refused ? errorText(error) : "";
  }
  // The server ends a stream whose token is no longer accepted.
  if (!signal.aborted) await loadSession();
  return "";
}

class Refused extends Error {}

async function read(signal: AbortSignal): Promise<void> {
  const all = [...subscribers.values()];
  const versions = new Map(
    all.flatMap(({ subscription, resourceVersion }) => {
      const version = resourceVersion();
      return version === undefined ? [] : [[subscription.id, version] as const];
    }),
  );
  const wanted = all.map(({ subscription }) => subscription);
  const q = encodeSubscriptions(resumed(wanted, versions));
  const headers = { accept: "text/event-stream" };
  const response = await fetch(`/stream?q=${q}`, { signal, redirect: "manual", headers });
  if (isSignedOutByProxy(response)) throw new Refused();
  const known = session.peek();
  if (response.status === 401 && known) session.value = { signedIn: false, mode: known.mode };
  if (!response.ok || !response.body) throw new Refused(messageIn(await response.text()) ?? "");
  for (const subscriber of all) subscriber.reopened();
  connection.value = "live";
  connectionProblem.value = "";
  await readEvents(response.body);
}

async function readEvents(body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    lastHeard = Date.now();
    failures = 0;
    const parsed = parseSse(rest + value);
    rest = parsed.rest;
    batch(() => {
      for (const data of parsed.data) dispatch(JSON.parse(data) as StreamMessage);
    });
  }
}

function dispatch(message: StreamMessage): void {
  subscribers.get(message.id)?.receive(message);
}

/** A request without a response is as dead as a stream without a heartbeat. */
function reopenIfSilent(): void {
  if (subscribers.size > 0 && connection.peek() !== "idle" && isSilent(lastHeard, Date.now())) {
    connection.value = "lost";
    scheduleOpen(0);
  }
}

/** A machine that wakes up, or is online again, does not wait for the next retry. */
function reopenIfLost(): void {
  reopenIfSilent();
  if (connection.peek() === "lost") scheduleOpen(0);
}

/** A stream that was opened too early, before the user was signed in, is opened again. */
function openWhenSignedIn(): void {
  effect(() => {
    if (session.value?.signedIn === true && connection.peek() === "idle" && subscribers.size > 0) scheduleOpen(0);
  });
}

export function startStream(): void {
  openWhenSignedIn();
  setInterval(reopenIfSilent, checkMs);
  addEventListener("online", reopenIfLost);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") reopenIfLost();
  });
}
