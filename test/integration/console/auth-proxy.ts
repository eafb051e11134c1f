/**
 * A proxy with HTTPS in front of the console, which signs users in as oauth2-proxy does: a cookie of its own identifies the
 * session, and each request to the console has the token of the session's user. Requests go to the replicas in turn.
 */
import { createServer, type Server } from "node:https";
import { request, type IncomingMessage, type ServerResponse } from "node:http";

import { createCa } from "@pko/cluster";

/** What requests of a page get after the session has ended: a page with status 403, or a redirect to another site. */
export type SignedOutAnswer = "page" | "redirect";

interface Options {
  readonly port: number;
  /** The ports of the console's replicas. */
  readonly replicas: readonly number[];
  /** Of the user who signs in; without one, the proxy only terminates TLS. */
  readonly token?: string;
  readonly signedOutAnswer?: SignedOutAnswer;
  /** What the console receives instead of the host name of the browser. */
  readonly replacedHost?: string;
}

const cookie = "proxy-session";

export class AuthProxy implements AsyncDisposable {
  /** Another site: its pages cannot be read by those of the console. */
  readonly loginOrigin = "https://login.example.com";
  readonly #options: Options;
  readonly #server: Server;
  #session = 1;
  #requests = 0;

  private constructor(options: Options, certificate: { readonly cert: string; readonly key: string }) {
    this.#options = options;
    this.#server = createServer(certificate, (incoming, outgoing) => this.#answer(incoming, outgoing));
  }

  static async start(options: Options): Promise<AuthProxy> {
    const authority = await createCa("authenticating proxy");
    const certificate = await authority.issue({ commonName: "proxy", ips: ["127.0.0.1"], dns: ["localhost"] });
    const proxy = new AuthProxy(options, certificate);
    await new Promise<void>((resolve) => proxy.#server.listen({ port: options.port, host: "127.0.0.1" }, resolve));
    return proxy;
  }

  get origin(): string {
    return `https://localhost:${this.#options.port}`;
  }

  /** Ends the session of the user, and its connections. */
  endSession(): void {
    this.#session++;
    this.#server.closeAllConnections();
  }

  #answer(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { pathname, searchParams } = new URL(incoming.url ?? "/", this.origin);
    if (this.#options.token === undefined) return this.#forward(incoming, outgoing);
    if (pathname === "/oauth2/start") {
      const location = searchParams.get("rd") ?? "/";
      const value = `${cookie}=${this.#session}; Path=/; HttpOnly; Secure; SameSite=Lax`;
      return void outgoing.writeHead(302, { location, "set-cookie": value }).end();
    }
    const isSignedIn = incoming.headers.cookie?.includes(`${cookie}=${this.#session}`) === true;
    return isSignedIn ? this.#forward(incoming, outgoing) : this.#requestSignIn(incoming, outgoing);
  }

  #requestSignIn({ headers, url = "/" }: IncomingMessage, outgoing: ServerResponse): void {
    const isNavigation = headers.accept?.includes("text/html") === true;
    if (isNavigation) {
      outgoing.writeHead(302, { location: `/oauth2/start?rd=${encodeURIComponent(url)}` }).end();
    } else if (this.#options.signedOutAnswer === "redirect") {
      outgoing.writeHead(302, { location: `${this.loginOrigin}/authorize` }).end();
    } else if (headers.accept === "application/json") {
      outgoing.writeHead(401, { "content-type": "application/json" }).end();
    } else {
      outgoing.writeHead(403, { "content-type": "text/html; charset=utf-8" }).end("<h1>Sign in</h1>");
    }
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { replicas, token, replacedHost } = this.#options;
    const { method, url: path } = incoming;
    const { authorization: _, ...headers } = incoming.headers;
    const upstream = request({
      port: replicas[this.#requests++ % replicas.length],
      method,
      path,
      headers: {
        ...headers,
        "x-forwarded-proto": "https",
        ...(replacedHost !== undefined && { host: replacedHost }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
    });
    upstream.on("response", (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      outgoing.flushHeaders();
      response.pipe(outgoing);
    });
    upstream.on("error", () => outgoing.destroy());
    outgoing.on("close", () => upstream.destroy());
    incoming.pipe(upstream);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }
}
