/**
 * Signing in to Pulumi Cloud where the workspace has no token of its own: the service account's token, which the kubelet
 * renews in its file, is exchanged for an access token, again before that one ends. It is kept in memory; the CLI, which
 * writes down what it is given, gets a folder in memory for that.
 */
import { join } from "node:path";
import { done, failed, type Outcome } from "../../outcome.ts";
import { readIfThere } from "../../system/files.ts";
import type { Log } from "../../system/log.ts";
import type { Redactor } from "../../system/redact.ts";
import { entry } from "../project.ts";
import { pulumiHome } from "../writable-folders.ts";
import { cloudUrl, type Environment } from "./backend.ts";
import { exchangeToken, type AccessToken } from "./token-exchange.ts";

export interface OidcOptions {
  /** The file with the service account's token. */
  readonly tokenFile: string;
  readonly organization: string;
  /** "", admin, team:NAME or user:LOGIN. */
  readonly scope: string;
  readonly expirationSeconds: number;
  /** A folder in memory, where the CLI keeps the token that it is given. */
  readonly credentials: string;
}

interface SignInParts {
  readonly oidc: OidcOptions | undefined;
  readonly redactor: Redactor;
  readonly log: Log;
}

export interface SignInRequest {
  /** That of the CLI, without what signing in adds to it. */
  readonly env: Environment;
  /** What the project file says of the backend. */
  readonly backend: string | undefined;
  /** A run may take as long as a token is good for: it begins with a new one. */
  readonly purpose: "command" | "run";
  readonly signal?: AbortSignal | undefined;
}

const tokenVariable = "PULUMI_ACCESS_TOKEN";
export const credentialsVariable = "PULUMI_CREDENTIALS_PATH";
/** How much of its time a token must have before it, for a run and at most for a command. */
const runShare = 0.9;
const commandShare = 0.5;
const commandMs = 5 * 60_000;

export class SignIn {
  readonly #parts: SignInParts;
  #token: (AccessToken & { readonly url: string }) | undefined;

  constructor(parts: SignInParts) {
    this.#parts = parts;
  }

  /** What the CLI is given besides its own environment. */
  variables(env: Environment): Record<string, string> {
    const { oidc } = this.#parts;
    if (!oidc || !this.#token || env[tokenVariable]) return {};
    return { [tokenVariable]: this.#token.value, [credentialsVariable]: oidc.credentials };
  }

  /** Where the CLI keeps the token: shells in the container find it there. */
  get credentialsFolder(): string | undefined {
    return this.#parts.oidc?.credentials;
  }

  /** Whether the last token was of ours, and its time is over. */
  get hasEnded(): boolean {
    return this.#token !== undefined && this.#token.endsAt <= performance.now();
  }

  /** One that is refused before its time is not tried again. */
  forget(): void {
    this.#token = undefined;
  }

  async ensure(request: SignInRequest): Promise<Outcome<undefined>> {
    const { oidc } = this.#parts;
    const url = cloudUrl(request.env, request.backend);
    if (!oidc || url === undefined || request.env[tokenVariable] || (await hasCredentials(request.env, url))) {
      this.#token = undefined;
      return done(undefined);
    }
    if (this.#token?.url === url && isGoodFor(this.#token, request.purpose)) return done(undefined);
    return await this.#exchange(oidc, url, request);
  }

  async #exchange(oidc: OidcOptions, url: string, { env, signal }: SignInRequest): Promise<Outcome<undefined>> {
    const { redactor, log } = this.#parts;
    const { tokenFile, organization, scope, expirationSeconds } = oidc;
    const identity = (await readIfThere(tokenFile))?.trim();
    if (!identity) return failed("invalidToken", `the service account's token is not in ${tokenFile}`);
    redactor.addPassing(identity);
    const token = await exchangeToken({ url, identity, organization, scope, expirationSeconds, env, redactor, signal });
    if (!token.ok) return token;
    redactor.addPassing(token.value.value);
    this.#token = { ...token.value, url };
    const until = new Date(Date.now() + token.value.endsAt - performance.now()).toISOString();
    log.info("signed in to Pulumi Cloud", { url, organization, ...(scope !== "" && { scope }), until });
    return done(undefined);
  }
}

function isGoodFor({ endsAt, lifetimeMs }: AccessToken, purpose: SignInRequest["purpose"]): boolean {
  const least = purpose === "run" ? lifetimeMs * runShare : Math.min(commandMs, lifetimeMs * commandShare);
  return endsAt - performance.now() > least;
}

/** Whether somebody has logged in already, in the image or in an init container. */
async function hasCredentials(env: Environment, url: string): Promise<boolean> {
  const folder = env[credentialsVariable] || pulumiHome(env);
  try {
    const stored: unknown = JSON.parse((await readIfThere(join(folder, "credentials.json"))) ?? "{}");
    const account = entry(entry(stored, "accounts"), url);
    return Boolean(entry(account, "accessToken") ?? entry(entry(stored, "accessTokens"), url));
  } catch {
    return false;
  }
}
