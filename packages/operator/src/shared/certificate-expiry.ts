/** When the operator's certificates expire, for an alert: each is renewed long before that. */
import { X509Certificate } from "node:crypto";

import type { Registry } from "@pko/kube";

import { parseTimestamp } from "./parse-timestamp.ts";

/** `ca`: the newest CA. `operator`: for connections to agents. `webhook`: of the endpoint for webhooks. */
type CertificateUse = "ca" | "operator" | "webhook";

/** `read` returns the current certificate as PEM, if there is one. */
export function exposeExpiry(metrics: Registry, certificate: CertificateUse, read: () => string | undefined): void {
  const gauge = metrics.gauge({
    name: "certificate_expiry_timestamp_seconds",
    help: "The Unix time at which a certificate of the operator expires, by its use: ca, operator or webhook.",
    labels: ["certificate"],
  });
  metrics.onCollect(() => {
    const expiresAt = expiryOf(read());
    if (expiresAt === undefined) gauge.remove({ certificate });
    else gauge.set({ certificate }, expiresAt / 1000);
  });
}

/** Mounted files may contain anything. */
function expiryOf(pem: string | undefined): number | undefined {
  if (pem === undefined) return undefined;
  try {
    return parseTimestamp(new X509Certificate(pem).validTo);
  } catch {
    return undefined;
  }
}
