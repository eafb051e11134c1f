/** The credentials for the API of a forge, resolved from a Secret: the keys show which kind it holds. */
import type { ForgeCredentials, ForgeTarget } from "@pko/forge";

import { isToken } from "../shared/is-token.ts";
import type { GitHubAppTokens } from "../sources/github-app.ts";
import { caKey } from "../sources/server-trust.ts";
import * as messages from "./messages.ts";

/** Values of a Secret, decoded. */
export type SecretValues = Readonly<Record<string, string>>;

export type ForgeAccess =
  | { readonly kind: "found"; readonly credentials: ForgeCredentials }
  /** The Secret lacks the keys, or its token cannot be valid. */
  | { readonly kind: "invalid"; readonly message: string }
  /** GitHub does not exchange the key of the App for a token; or it does not respond. */
  | { readonly kind: "refused" | "unavailable"; readonly message: string };

interface ExchangeOptions {
  readonly target: ForgeTarget;
  readonly githubApps: GitHubAppTokens;
  readonly signal: AbortSignal;
}

export async function forgeCredentials(
  name: string,
  values: SecretValues,
  options: ExchangeOptions,
): Promise<ForgeAccess> {
  const { token, username, password, appID, installationID, privateKey } = values;
  const trust = values[caKey] ? { ca: values[caKey] } : {};
  if (token) {
    const trimmed = token.trim();
    if (!isToken(trimmed)) return { kind: "invalid", message: messages.tokenInvalid(name) };
    return { kind: "found", credentials: { kind: "token", token: trimmed, ...trust } };
  }
  if (appID && installationID && privateKey) {
    const app = { appId: appID.trim(), installationId: installationID.trim(), privateKey };
    return await exchanged({ ...app, ...trust, repository: "", api: options.target.url ?? "" }, options);
  }
  if (username && password) {
    const basic = { username: withoutLineBreak(username), password: withoutLineBreak(password) };
    return { kind: "found", credentials: { kind: "basic", ...basic, ...trust } };
  }
  return { kind: "invalid", message: messages.keysMissing(name) };
}

async function exchanged(
  app: Parameters<GitHubAppTokens["tokenFor"]>[0],
  { target, githubApps, signal }: ExchangeOptions,
): Promise<ForgeAccess> {
  if (target.type !== "GitHub") return { kind: "invalid", message: messages.appElsewhere(target.type) };
  const token = await githubApps.tokenFor(app, signal);
  if (!token.ok) return { kind: token.isTemporary ? "unavailable" : "refused", message: token.message };
  const { ca } = app;
  return {
    kind: "found",
    credentials: { kind: "token", token: token.token, ...(ca !== undefined && { ca }) },
  };
}

/** A Secret created from a file often ends with a line break that is not part of the value. */
const withoutLineBreak = (value: string): string => value.replace(/(?<![\r\n])[\r\n]+$/, "");

/** The values of a Secret as the API server returns it. */
export function secretValues(data: Readonly<Record<string, string>> = {}): SecretValues {
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString()]));
}
