/**
 * Signs in to Pulumi Cloud if the workspace has no access token: exchanges the service account's token, whose file the
 * kubelet renews, for an access token, and renews that before it expires. The access token stays in memory; the CLI,
 * which stores its token in a file, gets a folder in memory.
 */
import { join } from "node:path";
import type { Environment } from "@pko/git";
import { done, failed, type Outcome } from "../../outcome.ts";
import { readIfExists } from "../../system/files.ts";
import type { Log } from "../../system/log.ts";
import type { Redactor } from "../../system/redact.ts";
import { entry } from "../project/project.ts";
import { pulumiHome } from "../project/writable-folders.ts";
import { cloudUrl } from "./backend.ts";
import { exchangeToken, type AccessToken } from "./token-exchange.ts";

export interface OidcOptions {
  /** The file with the service account's token. */
  readonly tokenFile: string;
  readonly organization: string;
  /** "", admin, team:NAME or user:LOGIN. */
  readonly scope: string;
  readonly expirationSeconds: number;
  /** A folder in memory, where the CLI stores its token. */
  readonly credentials: string;
}

interface SignInParts {
  readonly oidc: OidcOptions | undefined;
  readonly redactor: Redactor;
  readonly log: Log;
}

export interface SignInRequest {
  /** The CLI's environment, without the variables from signing in. */
  readonly env: Environment;
  /** The backend in the project file. */
  readonly backend: string | undefined;
  /** A run may take as long as a token is valid, so it starts with a new one. */
  readonly purpose: "command" | "run";
  readonly signal?: AbortSignal | undefined;
}

const tokenVariable = "PULUMI_ACCESS_TOKEN";
export const credentialsVariable = "PULUMI_CREDENTIALS_PATH";
/** How much of its lifetime a token must have left for a run and, at most, for a command. */
const runShare = 0.9;
const commandShare = 0.5;
const commandMs = 5 * 60_000;

export class SignIn {
  readonly #parts: SignInParts;
  #token: (AccessToken & { readonly url: string }) | undefined;

  constructor(parts: SignInParts) {
    this.#parts = parts;
  }

  /** Additional variables for the CLI. */
  variables(env: Environment): Record<string, string> {
    const { oidc } = this.#parts;
    if (!oidc || !this.#token || env[tokenVariable]) return {};
    return { [tokenVariable]: this.#token.value, [credentialsVariable]: oidc.credentials };
  }

  /** Where the CLI stores the token, so that shells in the container can use it. */
  get credentialsFolder(): string | undefined {
    return this.#parts.oidc?.credentials;
  }

  /** Whether the last token came from signing in and has expired. */
  get hasExpired(): boolean {
    return this.#token !== undefined && this.#token.expiresAt <= performance.now();
  }

  /** Discards a token that the backend rejected before it expired. */
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
    if (this.#token?.url === url && isValidFor(this.#token, request.purpose)) return done(undefined);
    return await this.#exchange(oidc, url, request);
  }

  async #exchange(oidc: OidcOptions, url: string, { env, signal }: SignInRequest): Promise<Outcome<undefined>> {
    const { redactor, log } = this.#parts;
    const { tokenFile, organization, scope, expirationSeconds } = oidc;
    const identity = (await readIfExists(tokenFile))?.trim();
    if (!identity)
      return failed(
        "invalidToken",
        `the service account's token is missing in ${tokenFile}; check the volume that projects it`,
      );
    redactor.addShortLived(identity);
    const token = await exchangeToken({ url, identity, organization, scope, expirationSeconds, env, redactor, signal });
    if (!token.ok) return token;
    redactor.addShortLived(token.value.value);
    this.#token = { ...token.value, url };
    const until = new Date(Date.now() + token.value.expiresAt - performance.now()).toISOString();
    log.info("signed in to Pulumi Cloud", { url, organization, ...(scope !== "" && { scope }), until });
    return done(undefined);
  }
}

function isValidFor({ expiresAt, lifetimeMs }: AccessToken, purpose: SignInRequest["purpose"]): boolean {
  const minimum = purpose === "run" ? lifetimeMs * runShare : Math.min(commandMs, lifetimeMs * commandShare);
  return expiresAt - performance.now() > minimum;
}

/** Whether the image or an init container has already logged in. */
async function hasCredentials(env: Environment, url: string): Promise<boolean> {
  const folder = env[credentialsVariable] || pulumiHome(env);
  try {
    const stored: unknown = JSON.parse((await readIfExists(join(folder, "credentials.json"))) ?? "{}");
    const account = entry(entry(stored, "accounts"), url);
    return Boolean(entry(account, "accessToken") ?? entry(entry(stored, "accessTokens"), url));
  } catch {
    return false;
  }
}
