/** A fake GitHub Enterprise server that exchanges the JWT of a GitHub App for an installation token. */
import { generateKeyPairSync, randomUUID, verify } from "node:crypto";

interface FakeGitHub {
  readonly appId: string;
  readonly installationId: string;
  /** The key of the App, in PEM format. */
  readonly privateKey: string;
  /** Whether `user:password` gives access to repositories. */
  isAuthorized(credentials: string): boolean;
  /** The tokens that were issued. */
  readonly tokens: readonly string[];
  /** Undefined for a request to another path. */
  handle(request: Request): Response | undefined;
}

export function fakeGitHub(): FakeGitHub {
  const [appId, installationId] = ["12", "7001"];
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const tokens: string[] = [];
  const isValidJwt = (jwt: string): boolean => {
    const [head = "", body = "", signature = ""] = jwt.split(".");
    const signed = Buffer.from(`${head}.${body}`);
    if (!verify("RSA-SHA256", signed, publicKey, Buffer.from(signature, "base64url"))) return false;
    const { iss, exp, iat } = JSON.parse(Buffer.from(body, "base64url").toString()) as Record<string, unknown>;
    const now = Date.now() / 1000;
    // GitHub accepts a lifetime of at most ten minutes.
    return iss === appId && Number(exp) > now && Number(iat) <= now && Number(exp) - Number(iat) <= 600;
  };
  return {
    appId,
    installationId,
    privateKey: privateKey.export({ type: "pkcs1", format: "pem" }),
    tokens,
    isAuthorized: (credentials) => tokens.some((token) => credentials === `x-access-token:${token}`),
    handle(request) {
      const { pathname } = new URL(request.url);
      if (!pathname.startsWith("/api/v3/")) return undefined;
      const jwt = request.headers.get("authorization")?.replace(/^Bearer /, "") ?? "";
      if (!isValidJwt(jwt)) return new Response(null, { status: 401 });
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
