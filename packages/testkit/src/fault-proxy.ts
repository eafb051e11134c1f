/**
 * A proxy before an API server that records every request and misbehaves on demand.
 *
 * Requests: `on` adds a rule that sees each request before the server does, and may pass it, answer it, cut or freeze
 * its connection before the server gets it or after the server has done it. A rule may be asynchronous: what it awaits (a
 * delay, or the end of a process that it kills) happens before the request goes on. Watch events: `onEvent`.
 * Connections: `freeze`, `cut`, …
 */
import { createAuthority } from "@pko/cluster";
import { staticCredentials, type Credentials } from "@pko/kube";

import { filterEvents, type EventRule } from "./event-filter.ts";
import { freePort } from "./free-port.ts";
import { kubeconfigText } from "./kubeconfig-text.ts";
import { requestInfo, type RequestInfo } from "./request-info.ts";
import { statusBody } from "./status-body.ts";
import { streamingServer } from "./streaming-server.ts";
import { tcpFront, type TcpFront } from "./tcp-front.ts";

/** A request, and, once there is one, its answer. */
export interface ProxiedRequest extends RequestInfo {
  /** Counts from 1. */
  readonly sequence: number;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly isWrite: boolean;
  /** Of writes. */
  readonly body: string;
  readonly userAgent: string;
  /** What the API server answered; undefined as long as it did not, or never saw the request. */
  status?: number;
}

export type Verdict =
  | "pass"
  /** Answer in the server's stead. */
  | { readonly status: number; readonly reason?: string; readonly retryAfterSeconds?: number }
  /** End the connection before the server gets the request, or once it has answered, unheard. */
  | { readonly cut: "before" | "after" }
  /** Never answer, and keep the connection. */
  | { readonly freeze: "before" | "after" }
  /** Wait for this once the server has answered, before the client hears of it. */
  | { readonly afterwards: () => Promise<void> };

/** No verdict leaves it to the next rule; in the end the request passes. */
type RequestRule = (request: ProxiedRequest) => Verdict | undefined | Promise<Verdict | undefined>;

export interface FaultProxy
  extends AsyncDisposable, Pick<TcpFront, "freezeOpen" | "freeze" | "thaw" | "cut" | "refuse" | "accept"> {
  readonly url: string;
  /** The authority of the proxy's certificate, in PEM. */
  readonly ca: string;
  /** Credentials for the API server by way of the proxy. Requests without a token of their own act as the target's. */
  readonly credentials: Credentials;
  /** The text of a kubeconfig with these, for a process of its own. */
  readonly kubeconfig: string;
  /** All requests so far, in the order of their arrival. */
  readonly requests: readonly ProxiedRequest[];
  readonly writes: readonly ProxiedRequest[];
  /** The newest rule is asked first. Returns a function that removes it. */
  on(rule: RequestRule): () => void;
  /** For every event of every watch, those under way too. Returns a function that removes the rule. */
  onEvent(rule: EventRule): () => void;
  /** Resolves with the next request that matches, when it arrives. */
  nextRequest(matches: (request: ProxiedRequest) => boolean): Promise<ProxiedRequest>;
  forget(): void;
  close(): Promise<void>;
}

export async function faultProxy(target: Credentials): Promise<FaultProxy> {
  const authority = await createAuthority("fault proxy");
  const certificate = await authority.issue({ commonName: "fault-proxy", ips: ["127.0.0.1"], dns: ["localhost"] });
  const journal = new Journal();
  const inner = await streamingServer({
    ...certificate,
    answer: (request, clientPort) => serve({ target, journal, request, cut: () => front.cutOne(clientPort) }),
  });
  const front = await tcpFront(inner.port, await freePort());
  const url = `https://127.0.0.1:${front.port}`;
  const close = async (): Promise<void> => {
    await front.close();
    await inner.stop();
  };
  return {
    ...front,
    url,
    ca: authority.cert,
    credentials: staticCredentials({ server: url, tls: { ca: authority.cert } }),
    kubeconfig: kubeconfigText({
      cluster: { server: url, "certificate-authority-data": Buffer.from(authority.cert).toString("base64") },
      user: {},
    }),
    requests: journal.requests,
    get writes() {
      return journal.requests.filter(({ isWrite }) => isWrite);
    },
    on: (rule) => journal.add(journal.rules, rule),
    onEvent: (rule) => journal.add(journal.eventRules, rule),
    nextRequest: (matches) => journal.next(matches),
    forget: () => void (journal.requests.length = 0),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** What the proxy was told to do and has seen. */
class Journal {
  readonly requests: ProxiedRequest[] = [];
  readonly rules: RequestRule[] = [];
  readonly eventRules: EventRule[] = [];
  readonly #waiting = new Set<(request: ProxiedRequest) => void>();
  #count = 0;

  add<R>(rules: R[], rule: R): () => void {
    rules.unshift(rule);
    return () => {
      const index = rules.indexOf(rule);
      if (index >= 0) rules.splice(index, 1);
    };
  }

  async next(matches: (request: ProxiedRequest) => boolean): Promise<ProxiedRequest> {
    return await new Promise((resolve) => {
      const listener = (request: ProxiedRequest): void => {
        if (!matches(request)) return;
        this.#waiting.delete(listener);
        resolve(request);
      };
      this.#waiting.add(listener);
    });
  }

  async record(request: Request): Promise<ProxiedRequest> {
    const { pathname: path, searchParams: query } = new URL(request.url);
    const { method, headers } = request;
    const contentType = headers.get("content-type") ?? "";
    const recorded: ProxiedRequest = {
      ...requestInfo({ method, path, query, contentType }),
      sequence: ++this.#count,
      method,
      path,
      query,
      isWrite: method !== "GET" && method !== "HEAD",
      body: await request.text(),
      userAgent: headers.get("user-agent") ?? "",
    };
    this.requests.push(recorded);
    for (const listener of this.#waiting) listener(recorded);
    return recorded;
  }

  async judge(request: ProxiedRequest): Promise<Verdict> {
    for (const rule of this.rules.slice()) {
      const verdict = await rule(request);
      if (verdict !== undefined) return verdict;
    }
    return "pass";
  }
}

interface Exchange {
  readonly target: Credentials;
  readonly journal: Journal;
  readonly request: Request;
  /** Ends the client's connection. */
  readonly cut: () => void;
}

const never = new Promise<never>(() => {});

async function serve(exchange: Exchange): Promise<Response> {
  const { journal, request, cut } = exchange;
  const recorded = await journal.record(request);
  const verdict = await journal.judge(recorded);
  if (verdict === "pass") return await forward(exchange, recorded);
  if ("status" in verdict) return statusBody(verdict);
  if ("afterwards" in verdict) {
    const response = await forward(exchange, recorded);
    await verdict.afterwards();
    return response;
  }
  const [fault, when] = "cut" in verdict ? (["cut", verdict.cut] as const) : (["freeze", verdict.freeze] as const);
  if (when === "after") await (await forward(exchange, recorded)).arrayBuffer();
  if (fault === "freeze") return await never;
  cut();
  return new Response();
}

async function forward({ target, journal, request, cut }: Exchange, recorded: ProxiedRequest): Promise<Response> {
  const { tls, token } = await target.access();
  const headers = new Headers(request.headers);
  headers.delete("host");
  headers.set("accept-encoding", "identity");
  if (token !== undefined && !headers.has("authorization")) headers.set("authorization", `Bearer ${token}`);
  // Whoever brings a token acts as himself alone.
  const { cert: _, key: __, ...anonymous } = tls;
  try {
    const response = await fetch(`${target.server}${recorded.path}?${recorded.query.toString()}`, {
      method: recorded.method,
      headers,
      ...(recorded.body !== "" && { body: recorded.body }),
      tls: headers.has("authorization") && token === undefined ? anonymous : tls,
      signal: request.signal,
      keepalive: false,
    });
    recorded.status = response.status;
    const isWatch = recorded.verb === "watch" && response.ok && response.body !== null;
    const body = isWatch ? filterEvents(response.body, (event) => allows(journal, event, recorded)) : response.body;
    return new Response(body, { status: response.status, headers: passedOn(response.headers) });
  } catch {
    // The server is gone: so is the connection.
    cut();
    return new Response();
  }
}

async function allows(journal: Journal, event: Parameters<EventRule>[0], request: RequestInfo): Promise<boolean> {
  for (const rule of journal.eventRules) if ((await rule(event, request)) === "drop") return false;
  return true;
}

function passedOn(headers: Headers): Headers {
  const passed = new Headers(headers);
  for (const name of ["content-length", "transfer-encoding", "connection"]) passed.delete(name);
  return passed;
}
