/**
 * Authenticates as an installation of a GitHub App: a short-lived JWT, signed with the App's key, is exchanged for an
 * installation token. Tokens are valid for an hour and are cached in memory only.
 */
import { createPrivateKey, sign } from "node:crypto";

import { githubApi } from "@pko/forge";
import { request, trustedCaCertificates, type HttpResponse, type Lookup, type NetworkPolicy } from "@pko/git";
import { orAborted, systemClock, type Clock } from "@pko/kube";
import { readText } from "@pko/rpc";

import { contentHash } from "../shared/digest.ts";
import { isToken } from "../shared/is-token.ts";

export interface GitHubApp {
  readonly appId: string;
  readonly installationId: string;
  readonly privateKey: string;
  /** The repository's URL: an Enterprise server has its own API. */
  readonly repository: string;
  /** The root of the API, if it is known. */
  readonly api?: string;
  /** Certificates of the server's private CA, in PEM. */
  readonly ca?: string;
}

export type AppToken =
  | { readonly ok: true; readonly token: string }
  /** `isTemporary`: GitHub does not respond, and another attempt may succeed. */
  | { readonly ok: false; readonly message: string; readonly isTemporary?: boolean };

/** Exchanges a GitHub App's key for a token of one installation. Tokens are valid for an hour, and cached until they expire. */
export interface GitHubAppTokens {
  tokenFor(app: GitHubApp, signal?: AbortSignal): Promise<AppToken>;
}

/** GitHub accepts an installation's token as the password of this user. */
export const appCredentials = (token: string) =>
  ({ kind: "basic", username: "x-access-token", password: token }) as const;

interface GitHubAppOptions {
  readonly policy: NetworkPolicy;
  readonly clock?: Clock;
  /** The address of the API for a repository; that of github.com or of the Enterprise server when absent. */
  readonly apiOf?: (repository: URL) => string;
  /** The operator's environment, for CAs and proxies. */
  readonly inherited?: Readonly<Record<string, string | undefined>>;
  readonly lookup?: Lookup;
  /** How many tokens are kept. Of more, the oldest are forgotten: then they are exchanged again. */
  readonly maxTokens?: number;
}

interface CachedToken {
  readonly token: string;
  readonly until: number;
}

/** A token that expires sooner is replaced, because its user still needs it for a while. */
const marginMs = 10 * 60_000;
const timeoutMs = 20_000;
/** As at GitHub. A token that a server issues for longer is replaced after this time, too. */
const maxLifetimeMs = 60 * 60_000;
/** A response has a few hundred bytes. */
const maxResponseBytes = 64 * 1024;
/** GitHub's tokens have less than a hundred characters, but tenants choose the server. */
const maxTokenLength = 4096;

export function githubAppTokens(options: GitHubAppOptions): GitHubAppTokens {
  const cache = new Map<string, CachedToken>();
  const pending = new Map<string, Promise<AppToken>>();
  const { clock = systemClock, maxTokens = 1000 } = options;
  const forgetOld = (): void => {
    for (const [id, { until }] of cache) if (until < clock.now()) cache.delete(id);
    for (const id of [...cache.keys()].slice(0, -maxTokens)) cache.delete(id);
  };
  const exchangeNow = async (id: string, app: GitHubApp): Promise<AppToken> => {
    const exchanged = await exchange(app, options);
    if (!exchanged.ok) return exchanged;
    const { token, until } = exchanged;
    cache.delete(id);
    cache.set(id, { token, until });
    forgetOld();
    return { ok: true, token };
  };
  return {
    async tokenFor(app, signal) {
      const id = contentHash(app);
      const known = cache.get(id);
      if (known && known.until - marginMs > clock.now()) return { ok: true, token: known.token };
      // Not with the signal: others may wait for the same exchange, which has its own time limit.
      const shared = pending.get(id) ?? exchangeNow(id, app).finally(() => pending.delete(id));
      pending.set(id, shared);
      return await (signal ? orAborted(shared, signal) : shared);
    },
  };
}

type Exchanged = (CachedToken & { readonly ok: true }) | Extract<AppToken, { ok: false }>;

const failed = (message: string): Exchanged => ({ ok: false, message });
const unavailable = (message: string): Exchanged => ({ ok: false, message, isTemporary: true });

async function exchange(app: GitHubApp, options: GitHubAppOptions): Promise<Exchanged> {
  const { clock = systemClock, apiOf = defaultApi } = options;
  const api = app.api ?? apiFor(URL.parse(app.repository), apiOf);
  if (api === undefined) return failed("a GitHub App can authenticate to https repositories only");
  if (!/^\d+$/.test(app.installationId)) return failed("the installation ID of the GitHub App is not a number");
  const url = URL.parse(`${api}/app/installations/${app.installationId}/access_tokens`);
  if (!url) return failed("the URL of the API is not valid");
  const jwt = signedJwt(app, clock.now());
  if (jwt === undefined) return failed("the private key of the GitHub App is not a PEM key");
  return await requestToken(url, jwt, { app, options });
}

interface TokenRequest {
  readonly app: GitHubApp;
  readonly options: GitHubAppOptions;
}

async function requestToken(url: URL, jwt: string, { app, options }: TokenRequest): Promise<Exchanged> {
  const { clock = systemClock, policy, inherited = {}, lookup } = options;
  const ca = app.ca ?? (await trustedCaCertificates(inherited));
  try {
    const result = await request(url, {
      policy,
      method: "POST",
      authorization: `Bearer ${jwt}`,
      headers: { accept: "application/vnd.github+json", "user-agent": "pulumi-operator" },
      redirects: "return",
      environment: inherited,
      signal: AbortSignal.timeout(timeoutMs),
      ...(ca !== undefined && { ca }),
      ...(lookup && { lookup }),
    });
    if (result.kind === "answered") return await readResponse(result.response, clock.now());
    return result.kind === "unreachable" ? unavailable(result.message) : failed(result.message);
  } catch {
    return unavailable(`${url.host} does not respond`);
  }
}

const apiFor = (repository: URL | null, apiOf: (repository: URL) => string): string | undefined =>
  !repository || repository.protocol === "ssh:" ? undefined : apiOf(repository);

/** Without the server's error message, which may contain anything. */
async function readResponse(response: HttpResponse, now: number): Promise<Exchanged> {
  try {
    if (response.status === 401) return failed("GitHub does not accept the App's ID or key");
    if (response.status === 404) return failed("GitHub has no such installation of the App");
    if (response.status < 200 || response.status > 299) {
      const explain = response.status === 429 || response.status > 499 ? unavailable : failed;
      return explain(`GitHub responded with status ${response.status}`);
    }
    // The user's repository determines the host, which may send anything, and endlessly.
    const text = await readText(response.body, maxResponseBytes);
    if (text === undefined) return failed(`GitHub responded with more than ${maxResponseBytes} bytes`);
    const body = JSON.parse(text) as { token?: unknown; expires_at?: unknown } | null;
    if (typeof body?.token !== "string" || !isToken(body.token)) {
      return failed("GitHub responded without a valid token");
    }
    if (body.token.length > maxTokenLength) return failed("GitHub responded with a token that is too long");
    const expires = typeof body.expires_at === "string" ? Date.parse(body.expires_at) : Number.NaN;
    const latest = now + maxLifetimeMs;
    return { ok: true, token: body.token, until: Number.isNaN(expires) ? latest : Math.min(expires, latest) };
  } finally {
    response.close();
  }
}

const defaultApi = ({ host }: URL): string => githubApi({ scheme: "https", host });

/** Undefined for an invalid key. The times allow for clock skew. */
function signedJwt({ appId, privateKey }: GitHubApp, now: number): string | undefined {
  const seconds = Math.floor(now / 1000);
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const payload = { iat: seconds - 60, exp: seconds + 540, iss: appId };
  const signed = `${part({ alg: "RS256", typ: "JWT" })}.${part(payload)}`;
  try {
    const signature = sign("RSA-SHA256", Buffer.from(signed), createPrivateKey(privateKey));
    return `${signed}.${signature.toString("base64url")}`;
  } catch {
    return undefined;
  }
}
