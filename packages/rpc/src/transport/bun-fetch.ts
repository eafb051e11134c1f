/** The only user of Bun's `tls` option of `fetch`: a request to an IP address whose server must have a given name. */
import type { PeerCertificate } from "node:tls";
import { splitBundle, type Credentials } from "../tls/tls.ts";

interface SecureRequest {
  readonly url: string;
  readonly body: string;
  readonly serverName: string;
  readonly credentials: Credentials;
  readonly signal: AbortSignal;
}

export class WrongServer extends Error {
  constructor(expected: string) {
    super(`the server's certificate is not valid for ${expected}`);
    this.name = "WrongServer";
  }
}

export async function postSecurely(request: SecureRequest): Promise<Response> {
  return await fetch(request.url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: request.body,
    signal: request.signal,
    redirect: "error",
    // Kubernetes reuses pod IPs: a kept connection could reach another pod later.
    keepalive: false,
    tls: {
      ca: splitBundle(request.credentials.ca),
      cert: request.credentials.cert,
      key: request.credentials.key,
      serverName: request.serverName,
      rejectUnauthorized: true,
      checkServerIdentity: (_: string, certificate: PeerCertificate) =>
        checkServerName(request.serverName, certificate),
    },
  });
}

function checkServerName(expected: string, certificate: PeerCertificate): Error | undefined {
  const names = certificate.subjectaltname?.split(", ") ?? [];
  return names.includes(`DNS:${expected}`) ? undefined : new WrongServer(expected);
}
