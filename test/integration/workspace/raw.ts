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
  const response = await fetchTransport({
    method,
    url: `${credentials.server}${path}`,
    headers: { accept: "application/json", "content-type": contentType ?? "application/json" },
    ...(body && { body: JSON.stringify(body) }),
    tls: (await credentials.access()).tls,
    signal: AbortSignal.timeout(30_000),
    freshConnection: false,
  });
  return { status: response.status, body: JSON.parse(await response.text()) as Record<string, unknown> };
}

/** The same numbers for the same seed, on every machine. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
