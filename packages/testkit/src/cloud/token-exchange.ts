/** The token exchange (RFC 8693) of Pulumi Cloud: an identity provider's token for an access token. */
import { createPublicKey, verify } from "node:crypto";

import type { AccessTokens, Identity } from "./access.ts";
import type { Answer, Call } from "./http.ts";

export interface Jwks {
  readonly keys: readonly (JsonWebKey & { readonly kid?: string })[];
}

/** An identity provider that an organization trusts, with its policies. */
export interface Issuer {
  readonly url: string;
  readonly keys: Jwks;
  readonly policies: readonly Policy[];
}

interface Policy {
  readonly kind: Identity["kind"];
  /** The team of a team token, or the login of a personal token. */
  readonly name?: string;
  /** The subjects that may get such a token. */
  readonly subject: RegExp;
}

interface Exchange {
  readonly subject: string;
  readonly kind: Identity["kind"];
  readonly name: string;
  readonly expirationSeconds: number;
}

interface Claims {
  readonly iss: string;
  readonly sub: string;
  readonly aud: string | readonly string[];
  readonly exp: number;
}

const grantType = "urn:ietf:params:oauth:grant-type:token-exchange";
const subjectType = "urn:ietf:params:oauth:token-type:id_token";
const tokenType = /^urn:pulumi:token-type:access_token:(organization|team|personal)$/;

export class TokenExchange {
  readonly #tokens: AccessTokens;
  readonly #issuers = new Map<string, Issuer[]>();
  /** The maximum reported lifetime of a token, whatever is requested; for tests that revoke a token themselves. */
  longestSeconds = Infinity;
  /** All successful exchanges. */
  readonly granted: Exchange[] = [];

  constructor(tokens: AccessTokens) {
    this.#tokens = tokens;
  }

  /** Sets the issuers of one organization. */
  setIssuers(organization: string, ...issuers: readonly Issuer[]): void {
    this.#issuers.set(organization, [...issuers]);
  }

  /** Whether the organization has any issuer. */
  isTrusted(organization: string): boolean {
    return (this.#issuers.get(organization) ?? []).length > 0;
  }

  async exchange(call: Call): Promise<Answer> {
    const form = new URLSearchParams(await call.text());
    const field = (name: string): string => form.get(name) ?? "";
    if (field("grant_type") !== grantType) return rejected("unsupported_grant_type", "the grant type is not supported");
    if (field("subject_token_type") !== subjectType) return rejected("invalid_request", "subject_token_type is wrong");
    const organization = /^urn:pulumi:org:(.+)$/.exec(field("audience"))?.[1];
    const kind = tokenType.exec(field("requested_token_type"))?.[1] as Identity["kind"] | undefined;
    if (organization === undefined) return rejected("invalid_request", "the audience does not name an organization");
    if (!kind) return rejected("invalid_request", "unknown requested token type");
    const name = nameInScope(field("scope"), kind);
    if (name === undefined) return rejected("invalid_scope", `invalid scope for a token of kind ${kind}`);
    const claims = readClaims(field("subject_token"));
    if (!claims) return rejected("invalid_request", "the subject token is not a JWT");
    const issuer = this.#issuers.get(organization)?.find(({ url }) => url === claims.iss);
    if (!issuer) return rejected("invalid_grant", `the issuer ${claims.iss} is not registered`, 401);
    const fault = tokenFault(field("subject_token"), { claims, keys: issuer.keys, audience: field("audience") });
    if (fault !== undefined) return rejected("invalid_grant", fault, 401);
    const policy = issuer.policies.find((each) => each.kind === kind && (each.name ?? "") === name);
    if (!policy?.subject.test(claims.sub)) {
      return rejected("access_denied", `no policy allows ${claims.sub} a token of kind ${kind}`, 401);
    }
    return this.#grant({ organization, kind, name, subject: claims.sub, seconds: this.#lifetimeSeconds(form) });
  }

  #lifetimeSeconds(form: URLSearchParams): number {
    return Math.min(this.longestSeconds, Number(form.get("expiration")) || 7200);
  }

  #grant(grant: { organization: string; kind: Identity["kind"]; name: string; subject: string; seconds: number }) {
    const { organization, kind, name, subject, seconds } = grant;
    const identity: Identity = {
      kind,
      login: kind === "personal" ? name : `${organization}-${kind}`,
      organizations: [organization],
      ...(kind === "team" && { team: name }),
    };
    this.granted.push({ subject, kind, name, expirationSeconds: seconds });
    return {
      access_token: this.#tokens.issue(identity),
      issued_token_type: `urn:pulumi:token-type:access_token:${kind}`,
      token_type: "token",
      expires_in: seconds,
      scope: name,
    };
  }
}

function rejected(error: string, description: string, status = 400): Response {
  return Response.json({ error, error_description: description }, { status });
}

/** "" for a kind without a name, undefined for an invalid scope. */
function nameInScope(scope: string, kind: Identity["kind"]): string | undefined {
  if (kind === "organization") return ["", "admin"].includes(scope) ? "" : undefined;
  return new RegExp(`^${kind === "team" ? "team" : "user"}:(.+)$`).exec(scope)?.[1];
}

function readClaims(token: string): Claims | undefined {
  try {
    return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Claims;
  } catch {
    return undefined;
  }
}

function tokenFault(
  token: string,
  { claims, keys, audience }: { readonly claims: Claims; readonly keys: Jwks; readonly audience: string },
): string | undefined {
  const [head = "", body = "", signature = ""] = token.split(".");
  const { kid, alg } = JSON.parse(Buffer.from(head, "base64url").toString()) as { kid?: string; alg?: string };
  const key = keys.keys.find((each) => each.kid === kid);
  if (!key || alg !== "RS256") return "the subject token is signed by an unknown key";
  const publicKey = createPublicKey({ key, format: "jwk" });
  const isSigned = verify("RSA-SHA256", Buffer.from(`${head}.${body}`), publicKey, Buffer.from(signature, "base64url"));
  if (!isSigned) return "the subject token's signature is wrong";
  if (claims.exp * 1000 <= Date.now()) return "the subject token has expired";
  return [claims.aud].flat().includes(audience) ? undefined : `the subject token is not for ${audience}`;
}
