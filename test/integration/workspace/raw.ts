/** Calls for which the client has no method: the API server's own strategic merge, and writes that may be rejected. */
import { fetchTransport, type Credentials } from "@pko/kube";

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: object;
  readonly contentType?: string;
}

export async function call(credentials: Credentials, { method, path, body, contentType }: Call): Promise<Answer> {
  const { token, tls } = await credentials.access();
  const response = await fetchTransport({
    method,
    url: `${credentials.server}${path}`,
    headers: {
      accept: "application/json",
      authorization: `Bearer ${token}`,
      "content-type": contentType ?? "application/json",
    },
    ...(body && { body: JSON.stringify(body) }),
    tls,
    signal: AbortSignal.timeout(30_000),
    freshConnection: false,
  });
  return { status: response.status, body: JSON.parse(await response.text()) as Record<string, unknown> };
}
