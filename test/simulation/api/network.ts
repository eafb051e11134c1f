/** The connection of one process to a simulated API server, as the transport of the real client, with the faults of a network. */
import type { HttpRequest, Transport } from "@pko/kube";

import type { SeededRandom } from "../../../packages/kube/testing/seeded-random.ts";
import type { VirtualProcess } from "../virtual-time.ts";
import {
  statusReply,
  watchEvent,
  type ApiFrontend,
  type ApiReply,
  type ApiRequest,
  type WatchEvent,
  type WatchRequest,
} from "./server.ts";
import { StatusError, textOf, type Change, type Storage } from "./storage.ts";

/** What a request meets; decided for each request. */
export type RequestFault =
  /** The server rejects it before it does anything. */
  | "tooManyRequests"
  | "unavailable"
  /** Before it does anything, without a Retry-After. */
  | "serverError"
  /** It is processed, but no response arrives. */
  | "lostResponse"
  /** It never arrives. */
  | "lostRequest";

export interface NetworkOptions {
  readonly process: VirtualProcess;
  /** The process of the API server. */
  readonly server: VirtualProcess;
  readonly isDown?: () => boolean;
  readonly frontend: ApiFrontend;
  readonly storage: Storage;
  readonly user: string;
  readonly random: SeededRandom;
  /** Undefined for a request without a fault. */
  readonly faultOf?: (request: ApiRequest) => RequestFault | undefined;
  /** Whether nothing passes in either direction. */
  readonly isPartitioned?: () => boolean;
  /** Whether the next event of a watch gets lost, as behind a broken proxy. */
  readonly losesEvent?: (change: Change) => boolean;
  /** How much later than usual the events of watches arrive. */
  readonly watchLagMs?: () => number;
  /** How much later than usual a request that writes arrives, also one that was aborted meanwhile. */
  readonly writeDelayMs?: () => number;
  /** Called when the server has processed a request. */
  readonly onProcessed?: (request: ApiRequest, reply: ApiReply, delayMs: number) => void;
}

const bookmarkMs = 60_000;

export class ApiConnection {
  readonly #options: NetworkOptions;
  readonly #watches = new Set<OpenWatch>();

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  readonly transport: Transport = (request) =>
    new Promise((resolve, reject) => {
      const { process } = this.#options;
      if (request.signal.aborted) return reject(asError(request.signal.reason));
      const onAbort = (): void => reject(asError(request.signal.reason));
      request.signal.addEventListener("abort", onAbort, { once: true });
      const settle = (callback: () => void): void =>
        process.deliver(() => {
          request.signal.removeEventListener("abort", onAbort);
          callback();
        });
      this.#send(request, {
        answer: (response) => settle(() => resolve(response)),
        fail: (code) => settle(() => reject(Object.assign(new Error(`simulated ${code}`), { code }))),
      });
    });

  /** All connections break, as when the API server restarts. */
  breakWatches(): void {
    for (const watch of this.#watches) watch.fail();
  }

  /** For a process that is dead: the runtime keeps a stream that never ends, with everything that waits for it. */
  abortWatches(): void {
    for (const watch of this.#watches) watch.abort(new Error("the simulation has ended"));
  }

  #send(request: HttpRequest, caller: Caller): void {
    const { server, user, random, isPartitioned = () => false } = this.#options;
    const { method, body, headers, url } = request;
    const api: ApiRequest = {
      method,
      path: url.slice(url.indexOf("/", "https://".length)),
      headers,
      user,
      ...(body !== undefined && { body }),
    };
    const fault = this.#options.faultOf?.(api);
    if (this.#options.isDown?.()) return this.#later(() => caller.fail("ECONNREFUSED"));
    // A packet that gets lost is noticed by a time limit of the client only.
    if (isPartitioned() || fault === "lostRequest") return;
    const delayMs = method === "GET" ? 0 : (this.#options.writeDelayMs?.() ?? 0);
    server.after(latencyMs(random) + delayMs, () => {
      if (this.#options.isDown?.()) return this.#later(() => caller.fail("ECONNRESET"));
      if (fault === "lostResponse" || isPartitioned()) {
        this.#process(api, delayMs);
        if (random.next() < 0.5) this.#later(() => caller.fail("ECONNRESET"));
        return;
      }
      const refused = fault && refusals[fault];
      const watch = refused ? undefined : this.#options.frontend.watchOf(api);
      if (watch) return this.#openWatch(watch, request.signal, caller);
      const reply = refused ?? this.#process(api, delayMs);
      this.#later(() => caller.answer(responseOf(reply, server.clock.now())));
    });
  }

  #process(request: ApiRequest, delayMs: number): ApiReply {
    const reply = this.#options.frontend.handle(request);
    this.#options.onProcessed?.(request, reply, delayMs);
    return reply;
  }

  /** The response is on its way, even if the server dies. */
  #later(callback: () => void): void {
    const { process, random, isPartitioned = () => false } = this.#options;
    process.after(latencyMs(random), () => isPartitioned() || callback());
  }

  #openWatch(watch: WatchRequest, signal: AbortSignal, caller: Caller): void {
    const { storage } = this.#options;
    if (watch.revision < storage.compacted) {
      const expired = new StatusError(
        410,
        "Expired",
        `too old resource version: ${watch.revision} (${storage.compacted})`,
      );
      // A watch has begun when the API server notices it, so the response is an event.
      const event = { type: "ERROR", object: statusReply(expired).body };
      return this.#later(() => caller.answer(streamed(`${JSON.stringify(event)}\n`)));
    }
    const open = new OpenWatch(watch, { ...this.#options, onEnd: () => this.#watches.delete(open) });
    this.#watches.add(open);
    signal.addEventListener("abort", () => open.abort(asError(signal.reason)), { once: true });
    this.#later(() => caller.answer(streamed(open.body)));
  }
}

interface Caller {
  readonly answer: (response: Response) => void;
  readonly fail: (code: string) => void;
}

interface OpenWatchOptions extends NetworkOptions {
  readonly onEnd: () => void;
}

class OpenWatch {
  readonly body: ReadableStream<Uint8Array>;
  readonly #request: WatchRequest;
  readonly #options: OpenWatchOptions;
  readonly #encoder = new TextEncoder();
  readonly #ends: (() => void)[] = [];
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** What is on its way. */
  readonly #sent: { readonly at: number; readonly callback: () => void }[] = [];
  #sentUntil = 0;
  #isOpen = true;

  constructor(request: WatchRequest, options: OpenWatchOptions) {
    this.#request = request;
    this.#options = options;
    this.body = new ReadableStream({
      start: (controller) => void (this.#controller = controller),
      cancel: () => this.#end(),
    });
    const { storage, server } = options;
    for (const change of storage.since(request.revision)) this.#onChange(change);
    this.#ends.push(storage.subscribe((change) => change.revision > request.revision && this.#onChange(change)));
    if (request.timeoutMs !== undefined) this.#ends.push(server.after(request.timeoutMs, () => this.#close()));
    this.#scheduleBookmark();
  }

  fail(): void {
    this.#deliver(() => this.abort(Object.assign(new Error("simulated ECONNRESET"), { code: "ECONNRESET" })));
  }

  abort(reason: Error): void {
    if (!this.#isOpen) return;
    this.#end();
    this.#controller?.error(reason);
  }

  #onChange(change: Change): void {
    const event = watchEvent(this.#request, change);
    if (event && !this.#options.losesEvent?.(change)) this.#send(event);
  }

  #scheduleBookmark(): void {
    const { server, storage } = this.#options;
    const cancel = server.after(bookmarkMs, () => {
      const metadata = { resourceVersion: String(storage.revision) };
      this.#send({
        type: "BOOKMARK",
        object: { kind: this.#request.kind.kind, apiVersion: this.#request.kind.apiVersion, metadata },
      });
      if (this.#isOpen) this.#scheduleBookmark();
    });
    this.#ends.push(cancel);
  }

  #send(event: WatchEvent): void {
    const line = this.#encoder.encode(`{"type":"${event.type}","object":${textOf(event.object)}}\n`);
    this.#deliver(() => {
      if (this.#isOpen) this.#controller?.enqueue(line);
    });
  }

  #close(): void {
    this.#deliver(() => {
      if (!this.#isOpen) return;
      this.#end();
      this.#controller?.close();
    });
  }

  /** In order, and not while the network is partitioned. */
  #deliver(callback: () => void): void {
    const { process, random, watchLagMs = () => 0 } = this.#options;
    const at = Math.max(this.#sentUntil, process.clock.monotonic() + latencyMs(random) + watchLagMs());
    this.#sentUntil = at;
    this.#sent.push({ at, callback });
    if (this.#sent.length === 1) this.#receiveNext();
  }

  #receiveNext(): void {
    const { process, isPartitioned = () => false } = this.#options;
    const [next] = this.#sent;
    if (!next) return;
    process.after(next.at - process.clock.monotonic(), () => {
      // TCP sends it again later.
      if (isPartitioned()) return void process.after(1000, () => this.#receiveNext());
      this.#sent.shift();
      process.deliver(next.callback);
      this.#receiveNext();
    });
  }

  #end(): void {
    this.#isOpen = false;
    for (const end of this.#ends.splice(0)) end();
    this.#options.onEnd();
  }
}

const refusals: Readonly<Partial<Record<RequestFault, ApiReply>>> = {
  tooManyRequests: {
    ...statusReply(new StatusError(429, "TooManyRequests", "the server has received too many requests")),
    headers: { "retry-after": "1" },
  },
  unavailable: {
    ...statusReply(new StatusError(503, "ServiceUnavailable", "the server is currently unable to handle the request")),
    headers: { "retry-after": "1" },
  },
  serverError: statusReply(new StatusError(500, "InternalError", "etcdserver: leader changed")),
};

const streamed = (body: string | ReadableStream<Uint8Array>): Response =>
  new Response(body, { headers: { "content-type": "application/json" } });

function responseOf({ status, body, headers = {} }: ApiReply, nowMs: number): Response {
  const date = new Date(nowMs).toUTCString();
  return new Response(bodyText(body), {
    status,
    headers: { "content-type": "application/json", ...headers, date },
  });
}

/** A list is joined from the texts of its objects. */
function bodyText(body: object): string {
  if (!("items" in body)) return textOf(body);
  const { items, ...rest } = body as { readonly items: readonly object[] };
  return `${JSON.stringify(rest).slice(0, -1)},"items":[${items.map(textOf).join(",")}]}`;
}

const latencyMs = (random: SeededRandom): number => 0.2 + random.next() ** 4 * 40;

const asError = (reason: unknown): Error => (reason instanceof Error ? reason : new Error(String(reason)));
