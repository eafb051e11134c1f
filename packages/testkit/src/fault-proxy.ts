/**
 * A proxy in front of an API server that records every request and injects faults.
 *
 * Requests: `on` adds a rule that sees each request before the server does, and may pass it, answer it, or cut or freeze
 * its connection before the server receives it or after the server has processed it. A rule may be asynchronous: what it
 * awaits (a delay, or the end of a process that it kills) happens before the request continues. Watch events: `onEvent`.
 * Connections: `freeze`, `cut`, …
 */
import { createCa } from "@pko/cluster";
import { staticCredentials, type Credentials } from "@pko/kube";

import { filterEvents, type EventRule } from "./event-filter.ts";
import { freePort } from "./free-port.ts";
import { kubeconfigText } from "./kubeconfig-text.ts";
import { requestInfo, type RequestInfo } from "./request-info.ts";
import { statusResponse } from "./status-body.ts";
import { streamingServer } from "./streaming-server.ts";
import { tcpFront, type TcpFront } from "./tcp-front.ts";

/** A request, and the status of its response once there is one. */
export interface ProxiedRequest extends RequestInfo {
  /** Counts from 1. */
  readonly sequence: number;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly isWrite: boolean;
  /** Empty for reads. */
  readonly body: string;
  readonly userAgent: string;
  /** The API server's status code; undefined while there is no response. */
  status?: number;
}

export type Verdict =
  | "pass"
  /** Answer instead of the server. */
  | { readonly status: number; readonly reason?: string; readonly retryAfterSeconds?: number }
  /** Answer instead of the server with a body, which may be a stream. */
  | { readonly response: Response }
  /** End the connection before the server receives the request, or after its response, which is lost. */
  | { readonly cut: "before" | "after" }
  /** Never respond, and keep the connection open. */
  | { readonly freeze: "before" | "after" }
  /** Wait for this after the server's response, before the client receives it. */
  | { readonly afterwards: () => Promise<void> };

/** Without a verdict, the next rule decides; without any verdict, the request passes. */
type RequestRule = (request: ProxiedRequest) => Verdict | undefined | Promise<Verdict | undefined>;

export interface FaultProxy
  extends AsyncDisposable, Pick<TcpFront, "freezeOpen" | "freeze" | "thaw" | "cut" | "refuse" | "accept"> {
  readonly url: string;
  /** The CA of the proxy's certificate, in PEM. */
  readonly ca: string;
  /** Credentials for the API server through the proxy. Requests without a token use the target's. */
  readonly credentials: Credentials;
  /** The text of a kubeconfig with these credentials, for another process. */
  readonly kubeconfig: string;
  /** All requests so far, in order of arrival. */
  readonly requests: readonly ProxiedRequest[];
  readonly writes: readonly ProxiedRequest[];
  /** The newest rule comes first. Returns a function that removes the rule. */
  on(rule: RequestRule): () => void;
  /** For every event of every watch, including open ones. Returns a function that removes the rule. */
  onEvent(rule: EventRule): () => void;
  /** Resolves with the next request that matches, when it arrives. */
  nextRequest(matches: (request: ProxiedRequest) => boolean): Promise<ProxiedRequest>;
  forget(): void;
  close(): Promise<void>;
}

/** `target` has a token. */
export async function faultProxy(target: Credentials): Promise<FaultProxy> {
  const authority = await createCa("fault proxy");
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

/** The rules of the proxy and the requests it has seen. */
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
  if ("status" in verdict) return statusResponse(verdict);
  if ("response" in verdict) return verdict.response;
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
  if (!headers.has("authorization")) headers.set("authorization", `Bearer ${token}`);
  try {
    const response = await fetch(`${target.server}${recorded.path}?${recorded.query.toString()}`, {
      method: recorded.method,
      headers,
      ...(recorded.body !== "" && { body: recorded.body }),
      tls,
      signal: request.signal,
      keepalive: false,
    });
    recorded.status = response.status;
    const isWatch = recorded.verb === "watch" && response.ok && response.body !== null;
    const body = isWatch ? filterEvents(response.body, (event) => allows(journal, event, recorded)) : response.body;
    return new Response(body, { status: response.status, headers: forwardedHeaders(response.headers) });
  } catch {
    // The server is down: cut the connection too.
    cut();
    return new Response();
  }
}

async function allows(journal: Journal, event: Parameters<EventRule>[0], request: RequestInfo): Promise<boolean> {
  for (const rule of journal.eventRules) if ((await rule(event, request)) === "drop") return false;
  return true;
}

function forwardedHeaders(headers: Headers): Headers {
  const passed = new Headers(headers);
  for (const name of ["content-length", "transfer-encoding", "connection"]) passed.delete(name);
  return passed;
}
