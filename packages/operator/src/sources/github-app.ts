/**
 * Signs in as an installation of a GitHub App: a short-lived claim, signed with the App's key, is exchanged for a token of
 * the installation. Tokens live for an hour and are kept meanwhile, in memory alone.
 */
import { createHash, createPrivateKey, sign } from "node:crypto";

import { request, trustedAuthorities, type HttpResponse, type Lookup, type NetworkPolicy } from "@pko/git";
import { systemClock, type Clock } from "@pko/kube";
import { readText } from "@pko/rpc";

import type { AppToken, GitHubApp, GitHubAppTokens } from "../workspace/prepare-request.ts";

interface GitHubAppOptions {
  readonly policy: NetworkPolicy;
  readonly clock?: Clock;
  /** The API's address for a repository; that of github.com or of the Enterprise server when absent. */
  readonly apiOf?: (repository: URL) => string;
  /** Of the operator's own environment, for certificate authorities and proxies. */
  readonly inherited?: Readonly<Record<string, string | undefined>>;
  readonly lookup?: Lookup;
}

interface Kept {
  readonly token: string;
  readonly until: number;
}

/** A token with less time than this is replaced: whoever gets it has work to do. */
const marginMs = 10 * 60_000;
const answerMs = 20_000;
/** An answer is a few hundred bytes. */
const maxAnswerBytes = 64 * 1024;

export function githubAppTokens(options: GitHubAppOptions): GitHubAppTokens {
  const kept = new Map<string, Kept>();
  const { clock = systemClock } = options;
  return {
    async tokenFor(app, signal) {
      const id = createHash("sha256").update(JSON.stringify(app)).digest("hex");
      const known = kept.get(id);
      if (known && known.until - marginMs > clock.now()) return { ok: true, token: known.token };
      const exchanged = await exchange(app, options, signal);
      if (!exchanged.ok) return exchanged;
      for (const [other, { until }] of kept) if (until < clock.now()) kept.delete(other);
      kept.set(id, { token: exchanged.token, until: exchanged.until });
      return { ok: true, token: exchanged.token };
    },
  };
}

type Exchanged = (Kept & { readonly ok: true }) | Extract<AppToken, { ok: false }>;

const refused = (message: string): Exchanged => ({ ok: false, message });

async function exchange(app: GitHubApp, options: GitHubAppOptions, signal?: AbortSignal): Promise<Exchanged> {
  const { clock = systemClock, policy, apiOf = defaultApi } = options;
  const repository = URL.parse(app.repository);
  if (!repository || repository.protocol === "ssh:")
    return refused("a GitHub App signs in to https repositories alone");
  if (!/^\d+$/.test(app.installationId)) return refused("the installation's ID is not a number");
  const claim = claimOf(app, clock.now());
  if (claim === undefined) return refused("the App's private key is not a key in PEM");
  const url = new URL(`${apiOf(repository)}/app/installations/${app.installationId}/access_tokens`);
  const { inherited = {}, lookup } = options;
  const ca = app.ca ?? (await trustedAuthorities(inherited));
  const limit = AbortSignal.timeout(answerMs);
  try {
    const result = await request(url, {
      policy,
      method: "POST",
      authorization: `Bearer ${claim}`,
      headers: { accept: "application/vnd.github+json", "user-agent": "pulumi-operator" },
      redirects: "return",
      environment: inherited,
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
      ...(ca !== undefined && { ca }),
      ...(lookup && { lookup }),
    });
    return result.kind === "answered" ? await readAnswer(result.response, clock.now()) : refused(result.message);
  } catch (error) {
    if (signal?.aborted) throw error;
    return refused(`${url.host} does not answer`);
  }
}

/** What the server says of a failure is left out: it could be anything. */
async function readAnswer(response: HttpResponse, now: number): Promise<Exchanged> {
  try {
    if (response.status === 401) return refused("GitHub does not accept the App's ID or key");
    if (response.status === 404) return refused("GitHub knows no such installation of the App");
    if (response.status < 200 || response.status > 299) return refused(`GitHub answers with status ${response.status}`);
    // The host is the repository's own: it may answer with anything, and without end.
    const text = await readText(response.body, maxAnswerBytes);
    if (text === undefined) return refused(`GitHub answers with more than ${maxAnswerBytes} bytes`);
    const answer = JSON.parse(text) as { token?: unknown; expires_at?: unknown } | null;
    if (typeof answer?.token !== "string") return refused("GitHub answers without a token");
    const until = typeof answer.expires_at === "string" ? Date.parse(answer.expires_at) : Number.NaN;
    return { ok: true, token: answer.token, until: Number.isNaN(until) ? now + 3_600_000 : until };
  } finally {
    response.close();
  }
}

function defaultApi(repository: URL): string {
  return repository.hostname === "github.com" ? "https://api.github.com" : `https://${repository.host}/api/v3`;
}

/** Undefined for a key that is none. The times allow for clocks that differ. */
function claimOf({ appId, privateKey }: GitHubApp, now: number): string | undefined {
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
