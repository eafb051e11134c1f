/** GitHub's exchange of an App's claim for an installation's token, as an Enterprise server offers it. */
import { generateKeyPairSync, randomUUID, verify } from "node:crypto";

interface GitHubStandIn {
  readonly appId: string;
  readonly installationId: string;
  /** The App's, in PEM. */
  readonly privateKey: string;
  /** "user:password" that opens repositories, as `Authorization: Basic` has it. */
  opens(credentials: string): boolean;
  /** Tokens that were given out. */
  readonly tokens: readonly string[];
  /** Undefined for a request that is not for the exchange. */
  answer(request: Request): Response | undefined;
}

export function githubStandIn(): GitHubStandIn {
  const [appId, installationId] = ["12", "7001"];
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const tokens: string[] = [];
  const isClaim = (claim: string): boolean => {
    const [head = "", body = "", signature = ""] = claim.split(".");
    const signed = Buffer.from(`${head}.${body}`);
    if (!verify("RSA-SHA256", signed, publicKey, Buffer.from(signature, "base64url"))) return false;
    const { iss, exp, iat } = JSON.parse(Buffer.from(body, "base64url").toString()) as Record<string, unknown>;
    const now = Date.now() / 1000;
    // GitHub takes claims of ten minutes at most.
    return iss === appId && Number(exp) > now && Number(iat) <= now && Number(exp) - Number(iat) <= 600;
  };
  return {
    appId,
    installationId,
    privateKey: privateKey.export({ type: "pkcs1", format: "pem" }),
    tokens,
    opens: (credentials) => tokens.some((token) => credentials === `x-access-token:${token}`),
    answer(request) {
      const { pathname } = new URL(request.url);
      if (!pathname.startsWith("/api/v3/")) return undefined;
      const claim = request.headers.get("authorization")?.replace(/^Bearer /, "") ?? "";
      if (!isClaim(claim)) return new Response(null, { status: 401 });
      if (request.method !== "POST" || pathname !== `/api/v3/app/installations/${installationId}/access_tokens`) {
        return new Response(null, { status: 404 });
      }
      const token = `ghs_${randomUUID()}`;
      tokens.push(token);
      const expires = new Date(Date.now() + 3_600_000).toISOString();
      return Response.json({ token, expires_at: expires }, { status: 201 });
    },
  };
}
