/** The exchange of the service account's token for an access token (RFC 8693), and what a refusal means. */
import { parseJson } from "@pko/rpc";
import { Type } from "typebox";
import { done, failed, type Outcome } from "../../outcome.ts";
import { cut, cutName, linesOf, told, type Clean } from "../../system/clean-text.ts";
import { pause } from "../../system/pause.ts";
import type { Redactor } from "../../system/redact.ts";
import { entry } from "../project.ts";
import { callApi, type ApiAnswer } from "./api.ts";
import type { Environment } from "./backend.ts";

interface Exchange {
  readonly url: string;
  /** Of the service account. */
  readonly identity: string;
  readonly organization: string;
  /** "", admin, team:NAME or user:LOGIN. */
  readonly scope: string;
  readonly expirationSeconds: number;
  readonly env: Environment;
  /** A server may repeat what it was sent. */
  readonly redactor: Redactor;
  readonly signal?: AbortSignal | undefined;
}

export interface AccessToken {
  readonly value: string;
  readonly lifetimeMs: number;
  /** On the monotonic clock: the server says how long a token lasts, not until when. */
  readonly endsAt: number;
}

const Granted = Type.Object({ access_token: Type.String({ minLength: 1 }), expires_in: Type.Number() });

const tokenTypes = "urn:pulumi:token-type:access_token:";
/** Between tries, when nobody answers or the server is in trouble. */
const pausesMs = [1_000, 3_000];

export async function exchangeToken(exchange: Exchange): Promise<Outcome<AccessToken>> {
  const begun = performance.now();
  const answer = await askPersistently(exchange);
  if (answer.kind === "unreachable") return failed("backendUnavailable", answer.message);
  if (isTrouble(answer)) {
    return failed("backendUnavailable", `${exchange.url} answers a token exchange with ${answer.status}`);
  }
  if (answer.status !== 200) return refused(exchange, answer.status, answer.text);
  const granted = parseJson(Granted, answer.text);
  if (!granted.ok) return failed("invalidToken", `${exchange.url} answers a token exchange with something else`);
  const lifetimeMs = granted.value.expires_in * 1000;
  return done({ value: granted.value.access_token, lifetimeMs, endsAt: begun + lifetimeMs });
}

const isTrouble = (answer: ApiAnswer): boolean =>
  answer.kind === "unreachable" || answer.status >= 500 || answer.status === 429;

async function askPersistently(exchange: Exchange): Promise<ApiAnswer> {
  let answer = await ask(exchange);
  for (const ms of pausesMs) {
    if (!isTrouble(answer) || exchange.signal?.aborted) break;
    await pause(ms, exchange.signal);
    answer = await ask(exchange);
  }
  return answer;
}

async function ask({ url, identity, organization, scope, expirationSeconds, env, signal }: Exchange) {
  const form = new URLSearchParams({
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    audience: audienceOf(organization),
    requested_token_type: `${tokenTypes}${kindOf(scope)}`,
    scope,
    subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
    subject_token: identity,
    expiration: String(expirationSeconds),
  });
  return await callApi({
    method: "POST",
    url: `${url}/api/oauth/token`,
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: form.toString(),
    env,
    signal,
  });
}

const audienceOf = (organization: string): string => `urn:pulumi:org:${organization}`;

function kindOf(scope: string): "organization" | "team" | "personal" {
  if (scope.startsWith("team:")) return "team";
  return scope.startsWith("user:") ? "personal" : "organization";
}

/** In words that say what to do, with the names that have to be entered there. */
function refused(exchange: Exchange, status: number, text: string): Outcome<never> {
  const { url, identity, organization, scope, redactor } = exchange;
  if (status === 404) {
    return failed("invalidToken", `${url} knows no exchange of tokens (404): ${otherwise}`);
  }
  const { issuer, subject } = claimsOf(identity);
  const whose = scope.replace(/^team:/, "for the team ").replace(/^user:/, "of the user ");
  const what = `a token of the kind ${kindOf(scope)}${whose === scope ? "" : ` ${whose}`}`;
  return failed(
    "invalidToken",
    `Pulumi Cloud does not exchange the service account's token (${status}: ${wordsOf(text, redactor)}): ` +
      `in the organization ${organization}, register the OIDC issuer ${issuer} and allow ${subject} ${what}; ${otherwise}`,
  );
}

const otherwise = "or set envRefs.PULUMI_ACCESS_TOKEN";

function wordsOf(text: string, redactor: Redactor): Clean {
  try {
    const body: unknown = JSON.parse(text);
    for (const name of ["error_description", "message", "error"]) {
      const words = entry(body, name);
      if (typeof words === "string" && words !== "") return cut(redactor.clean(words), 500);
    }
  } catch {
    // Not JSON: a proxy's page, perhaps.
  }
  const [line] = linesOf(redactor.clean(text.trim()));
  return line ? cut(line, 200) : told`without a word`;
}

/** Names, not secrets: for people, and not verified. */
function claimsOf(identity: string): { readonly issuer: string; readonly subject: string } {
  const claims = decoded(identity);
  const text = (name: string): string | undefined => {
    const value = entry(claims, name);
    return typeof value === "string" ? cutName(value, 300) : undefined;
  };
  return { issuer: text("iss") ?? "of this cluster", subject: text("sub") ?? "the service account" };
}

function decoded(identity: string): unknown {
  try {
    return JSON.parse(Buffer.from(identity.split(".")[1] ?? "", "base64url").toString());
  } catch {
    return undefined;
  }
}
