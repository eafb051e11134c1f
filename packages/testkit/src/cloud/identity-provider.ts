/** An identity provider that signs tokens like a cluster's API server. */
import { createSign, generateKeyPairSync } from "node:crypto";

import type { Jwks } from "./token-exchange.ts";

interface IdentityProvider {
  readonly url: string;
  readonly keys: Jwks;
  /** A token for a subject and an audience, valid for an hour by default. */
  sign(subject: string, audience: string, lifetimeSeconds?: number): string;
}

export function identityProvider(url: string): IdentityProvider {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const kid = crypto.randomUUID();
  return {
    url,
    keys: { keys: [{ ...publicKey.export({ format: "jwk" }), kid }] },
    sign(subject, audience, lifetimeSeconds = 3600) {
      const now = Math.floor(Date.now() / 1000);
      const claims = { iss: url, sub: subject, aud: [audience], iat: now, exp: now + lifetimeSeconds };
      const signed = [{ alg: "RS256", kid }, claims].map(encoded).join(".");
      return `${signed}.${createSign("RSA-SHA256").update(signed).sign(privateKey, "base64url")}`;
    },
  };
}

const encoded = (part: object): string => Buffer.from(JSON.stringify(part)).toString("base64url");
