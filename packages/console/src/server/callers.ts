/** Who sends a request: the credentials for the API server, and what the caller has used of its limits. */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

import {
  staticCredentials,
  tokenBucket,
  type Clock,
  type Credentials,
  type TlsSettings,
  type TokenBucket,
} from "@pko/kube";

import { limits, type SignInMode } from "../shared/contract.ts";
import { AddressLimit } from "./address-limit.ts";
import { isSecure } from "./origin.ts";

/** How users sign in. */
export type SignIn =
  /** Everyone who opens the address with its token is the user of the kubeconfig. */
  | { readonly mode: "kubeconfig"; readonly credentials: Credentials; readonly context?: string }
  /** Every user has a token of their own. The console has no credentials. */
  | { readonly mode: "cluster"; readonly server: string; readonly ca?: () => Promise<string> };

export interface Caller {
  readonly mode: SignInMode;
  readonly credentials: Credentials;
  /** The cookie's value; absent if a proxy sends the token with each request. */
  readonly session?: string;
  /** The hash of a proxy's token. */
  readonly tokenHash?: string;
  readonly usage: Usage;
}

/** What one session, or one token of a proxy, has used. */
export interface Usage {
  readonly requests: TokenBucket;
  readonly streams: Set<AbortController>;
  /** The API server has accepted the token at least once. */
  isAccepted: boolean;
}

interface Session {
  readonly credentials: Credentials;
  readonly usage: Usage;
  readonly cancelExpiry: () => void;
}

const sessionLifetimeMs = 12 * 3600_000;
const maxSessions = 1000;
/** Requests of one address with tokens that the API server has not accepted yet: they could be guesses. */
const guessLimit = { burst: 100, refillMs: 50 };
const cookieName = "pulumi-console";
const secureCookieName = `__Host-${cookieName}`;

/** A token that can be a header of a request, and nothing else. */
export const isToken = (text: string): boolean => /^[\w\-.~+/=:|!@$%^&*#]{1,8192}$/.test(text);

export class Callers {
  readonly #sessions = new Map<string, Session>();
  /** By the hash of a proxy's token. */
  readonly #usages = new Map<string, Usage>();
  readonly #signIn: SignIn;
  readonly #clock: Clock;
  readonly #guesses: AddressLimit;
  #urlToken: string | undefined;

  constructor(signIn: SignIn, clock: Clock) {
    this.#signIn = signIn;
    this.#clock = clock;
    this.#guesses = new AddressLimit({ ...guessLimit, clock });
    if (signIn.mode === "kubeconfig") this.#urlToken = randomId();
  }

  /** For the address that opens the console; it is valid once. */
  get urlToken(): string | undefined {
    return this.#urlToken;
  }

  get defaultMode(): SignInMode {
    return this.#signIn.mode === "kubeconfig" ? "kubeconfig" : "token";
  }

  get streamCount(): number {
    const all = [...this.#sessions.values()].map(({ usage }) => usage).concat(...this.#usages.values());
    return all.reduce((sum, { streams }) => sum + streams.size, 0);
  }

  /** Undefined if the request has no valid credentials. */
  identify(headers: Headers): Caller | undefined {
    const token = this.#signIn.mode === "cluster" ? bearerToken(headers) : undefined;
    if (token !== undefined) return this.#proxied(token);
    const id = sessionCookie(headers);
    const session = id === undefined ? undefined : this.#sessions.get(id);
    if (id === undefined || !session) return undefined;
    return { mode: this.defaultMode, credentials: session.credentials, session: id, usage: session.usage };
  }

  /** Whether the caller may send one more request now, from this address. */
  mayRequest({ usage, tokenHash }: Caller, address: string): boolean {
    if (!usage.requests.take() || !(usage.isAccepted || this.#guesses.take(address))) return false;
    if (tokenHash !== undefined) this.#keep(tokenHash, usage);
    return true;
  }

  #proxied(token: string): Caller {
    const tokenHash = createHash("sha256").update(token).digest("hex");
    const usage = this.#usages.get(tokenHash) ?? newUsage(this.#clock, false);
    return { mode: "proxy", credentials: this.credentialsOf(token), tokenHash, usage };
  }

  /** Tokens that could be guesses make room first. */
  #keep(tokenHash: string, usage: Usage): void {
    this.#usages.delete(tokenHash);
    if (this.#usages.size >= maxSessions) {
      // The oldest without open pages; with them, it would get new limits.
      const unused = [...this.#usages].filter(([, { streams }]) => streams.size === 0);
      const [key] = unused.find(([, { isAccepted }]) => !isAccepted) ?? unused[0] ?? [];
      if (key !== undefined) this.#usages.delete(key);
    }
    this.#usages.set(tokenHash, usage);
  }

  /** Of a user's token. Only the user's: no certificate and no other token. */
  credentialsOf(token: string): Credentials {
    const signIn = this.#signIn;
    if (signIn.mode === "kubeconfig") throw new Error("the kubeconfig's credentials are used");
    const { server, ca } = signIn;
    const withTls = (tls: TlsSettings): Credentials => staticCredentials({ server, token, tls });
    if (!ca) return withTls({});
    return { server, access: async () => ({ token, tls: { ca: await ca() } }) };
  }

  /** Whether the token of the address can still be redeemed. */
  isUrlToken(token: string): boolean {
    return this.#urlToken !== undefined && isSame(token, this.#urlToken);
  }

  /** Takes the token of the address; undefined if it is another one, or has been used. */
  redeem(token: string): string | undefined {
    const signIn = this.#signIn;
    if (signIn.mode !== "kubeconfig" || !this.isUrlToken(token)) return undefined;
    this.#urlToken = undefined;
    return this.start(signIn.credentials);
  }

  /** Returns the cookie's value. The API server has accepted the credentials. */
  start(credentials: Credentials): string {
    const id = randomId();
    const isLimited = this.#signIn.mode === "cluster";
    const cancelExpiry = isLimited ? this.#clock.after(sessionLifetimeMs, () => this.end(id)) : () => undefined;
    this.#sessions.set(id, { credentials, usage: newUsage(this.#clock, true), cancelExpiry });
    const [oldest] = this.#sessions.keys();
    if (this.#sessions.size > maxSessions && oldest !== undefined) this.end(oldest);
    return id;
  }

  /** Its open pages are disconnected. */
  end(id: string): void {
    const session = this.#sessions.get(id);
    this.#sessions.delete(id);
    session?.cancelExpiry();
    for (const stream of session?.usage.streams ?? []) stream.abort(new Error("signed out"));
  }

  stop(): void {
    for (const id of this.#sessions.keys()) this.end(id);
    for (const { streams } of this.#usages.values()) for (const each of streams) each.abort(new Error("stopping"));
  }
}

const newUsage = (clock: Clock, isAccepted: boolean): Usage => ({
  requests: tokenBucket({ burst: limits.requestBurst, refillMs: 1000 / limits.requestsPerSecond, clock }),
  streams: new Set(),
  isAccepted,
});

const randomId = (): string => randomBytes(32).toString("base64url");

function isSame(a: string, b: string): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}

/** Two headers arrive as one with a comma, which no token has. */
function bearerToken(headers: Headers): string | undefined {
  const [, token] = /^Bearer +(\S+)$/i.exec(headers.get("authorization") ?? "") ?? [];
  return token !== undefined && isToken(token) ? token : undefined;
}

/**
 * Behind HTTPS only the cookie that nobody else can have set: a sibling domain could set the other one, and so make the user
 * act in another user's session.
 */
function sessionCookie(headers: Headers): string | undefined {
  const found = new Map<string, string>();
  for (const pair of headers.get("cookie")?.split(";") ?? []) {
    const [name = "", value = ""] = pair.trim().split("=", 2);
    if (!found.has(name)) found.set(name, value);
  }
  return found.get(secureCookieName) ?? (isSecure(headers) ? undefined : found.get(cookieName));
}

/** The header Set-Cookie of a session, or the end of it. It has no expiry: it ends with the browser, or earlier on the server. */
export function cookieHeader(id: string | undefined, isSecure: boolean): string {
  const name = isSecure ? secureCookieName : cookieName;
  const attributes = ["Path=/", "HttpOnly", "SameSite=Strict", ...(isSecure ? ["Secure"] : [])];
  return [`${name}=${id ?? ""}`, ...attributes, ...(id === undefined ? ["Max-Age=0"] : [])].join("; ");
}
