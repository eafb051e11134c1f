/** Exchanges the service account's token for an access token (RFC 8693), and explains a rejection. */
import type { Environment } from "@pko/git";
import { parseJson, pause } from "@pko/rpc";
import { Type } from "typebox";
import { done, failed, type Outcome } from "../../outcome.ts";
import { truncate, truncateName, nonEmptyLines, cleanText, type Clean } from "../../system/clean-text.ts";
import type { Redactor } from "../../system/redact.ts";
import { entry } from "../project/project.ts";
import { callApi, type ApiResponse } from "./api.ts";

interface Exchange {
  readonly url: string;
  /** The service account's token. */
  readonly identity: string;
  readonly organization: string;
  /** "", admin, team:NAME or user:LOGIN. */
  readonly scope: string;
  readonly expirationSeconds: number;
  readonly env: Environment;
  /** For the server's error, which may repeat the request. */
  readonly redactor: Redactor;
  readonly signal?: AbortSignal | undefined;
}

export interface AccessToken {
  readonly value: string;
  readonly lifetimeMs: number;
  /** On the monotonic clock, because the server returns a duration. */
  readonly expiresAt: number;
}

const Granted = Type.Object({ access_token: Type.String({ minLength: 1 }), expires_in: Type.Number() });

const tokenTypes = "urn:pulumi:token-type:access_token:";
/** Delays before retries, when the server does not respond or has an error. */
const retryDelaysMs = [1_000, 3_000];

export async function exchangeToken(exchange: Exchange): Promise<Outcome<AccessToken>> {
  const startedAt = performance.now();
  const response = await postWithRetries(exchange);
  if (response.kind === "unreachable") return failed("backendUnavailable", response.message);
  if (isUnavailable(response)) {
    return failed(
      "backendUnavailable",
      `${exchange.url} cannot exchange tokens now (HTTP ${response.status}); the operator retries`,
    );
  }
  if (response.status !== 200) return rejection(exchange, response.status, response.text);
  const granted = parseJson(Granted, response.text);
  if (!granted.ok) {
    return failed("invalidToken", `${exchange.url} returned no access token; check the backend's URL, ${alternative}`);
  }
  const lifetimeMs = granted.value.expires_in * 1000;
  return done({ value: granted.value.access_token, lifetimeMs, expiresAt: startedAt + lifetimeMs });
}

const isUnavailable = (response: ApiResponse): boolean =>
  response.kind === "unreachable" || response.status >= 500 || response.status === 429;

async function postWithRetries(exchange: Exchange): Promise<ApiResponse> {
  let response = await post(exchange);
  for (const ms of retryDelaysMs) {
    if (!isUnavailable(response) || exchange.signal?.aborted) break;
    await pause(ms, exchange.signal);
    response = await post(exchange);
  }
  return response;
}

async function post({ url, identity, organization, scope, expirationSeconds, env, signal }: Exchange) {
  const form = new URLSearchParams({
    grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
    audience: audienceFor(organization),
    requested_token_type: `${tokenTypes}${tokenKind(scope)}`,
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

const audienceFor = (organization: string): string => `urn:pulumi:org:${organization}`;

function tokenKind(scope: string): "organization" | "team" | "personal" {
  if (scope.startsWith("team:")) return "team";
  return scope.startsWith("user:") ? "personal" : "organization";
}

/** Names what to enter in Pulumi Cloud. */
function rejection(exchange: Exchange, status: number, text: string): Outcome<never> {
  const { url, identity, organization, scope, redactor } = exchange;
  if (status === 404) {
    return failed("invalidToken", `${url} does not support token exchange (HTTP 404); check the URL, ${alternative}`);
  }
  const { issuer, subject } = readClaims(identity);
  const whose = scope.replace(/^team:/, "for the team ").replace(/^user:/, "of the user ");
  const what = `tokens of type ${tokenKind(scope)}${whose === scope ? "" : ` ${whose}`}`;
  return failed(
    "invalidToken",
    `Pulumi Cloud rejects the service account's token (HTTP ${status}: ${serverMessage(text, redactor)}); ` +
      `in the organization ${organization}, register the OIDC issuer ${issuer} and allow ${subject} ${what}, ${alternative}`,
  );
}

const alternative = "or set envRefs.PULUMI_ACCESS_TOKEN";

function serverMessage(text: string, redactor: Redactor): Clean {
  try {
    const body: unknown = JSON.parse(text);
    for (const name of ["error_description", "message", "error"]) {
      const message = entry(body, name);
      if (typeof message === "string" && message !== "") return truncate(redactor.clean(message), 500);
    }
  } catch {
    // Not JSON, possibly a proxy's page.
  }
  const [line] = nonEmptyLines(redactor.clean(text.trim()));
  return line ? truncate(line, 200) : cleanText`no message`;
}

/** Only for messages: the token is not verified, and the claims are not secret. */
function readClaims(identity: string): { readonly issuer: string; readonly subject: string } {
  const claims = decodeClaims(identity);
  const text = (name: string): string | undefined => {
    const value = entry(claims, name);
    return typeof value === "string" ? truncateName(value, 300) : undefined;
  };
  return { issuer: text("iss") ?? "of this cluster", subject: text("sub") ?? "the service account" };
}

function decodeClaims(identity: string): unknown {
  try {
    return JSON.parse(Buffer.from(identity.split(".")[1] ?? "", "base64url").toString());
  } catch {
    return undefined;
  }
}
