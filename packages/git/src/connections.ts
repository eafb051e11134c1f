/**
 * Connections to servers that are kept open between requests. A host's addresses are looked up once a minute, and an address is
 * used after a connection to it has succeeded: an address that does not respond costs ten seconds, not a whole request.
 */
import { connect } from "node:net";

import { systemLookup, type Lookup } from "./addresses.ts";

export interface Connections {
  readonly lookup: Lookup;
  /** The first address that accepts connections. Rejects if there is none. */
  reachable(addresses: readonly string[], port: number, signal?: AbortSignal): Promise<string>;
  /** The next request tests the address again. */
  distrust(address: string, port: number): void;
  readonly fetch: Bun.FetchSession["fetch"];
}

interface ConnectionsOptions {
  readonly lookup?: Lookup;
  readonly connectMs?: number;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
}

const lookupMs = 60_000;
const defaultConnectMs = 10_000;
/** Longer than the shortest polling interval. */
const idleSeconds = 90;
const maxIdleSockets = 64;
/** Of hosts and of addresses; then all are forgotten. */
const maxKnown = 10_000;

export function keptConnections(options: ConnectionsOptions = {}): Connections {
  const { lookup = systemLookup, connectMs = defaultConnectMs, now = () => performance.now() } = options;
  const reachable = new Set<string>();
  // Its own pool: the idle connections to Git servers must not displace those to the API server.
  const session = new Bun.FetchSession({ keepAlive: { idleTimeout: idleSeconds, maxIdleSockets } });
  return {
    lookup: cachedLookup(lookup, now),
    async reachable(addresses, port, signal) {
      const known = addresses.find((address) => reachable.has(`${address} ${port}`));
      if (known !== undefined) return known;
      let failure: unknown = new Error("the host has no address");
      for (const address of addresses) {
        try {
          await testConnection({ address, port, connectMs, ...(signal && { signal }) });
          if (reachable.size >= maxKnown) reachable.clear();
          reachable.add(`${address} ${port}`);
          return address;
        } catch (error) {
          failure = error;
        }
      }
      throw failure;
    },
    distrust: (address, port) => void reachable.delete(`${address} ${port}`),
    fetch: session.fetch,
  };
}

/** Concurrent lookups of a host share one, and failures are not kept. */
function cachedLookup(lookup: Lookup, now: () => number): Lookup {
  const known = new Map<string, { readonly at: number; readonly addresses: Promise<readonly string[]> }>();
  return async (host) => {
    const cached = known.get(host);
    if (cached && now() - cached.at < lookupMs) return await cached.addresses;
    const addresses = lookup(host);
    if (known.size >= maxKnown) known.clear();
    known.set(host, { at: now(), addresses });
    try {
      return await addresses;
    } catch (error) {
      known.delete(host);
      throw error;
    }
  };
}

interface ConnectionTest {
  readonly address: string;
  readonly port: number;
  readonly connectMs: number;
  readonly signal?: AbortSignal;
}

async function testConnection({ address, port, connectMs, signal }: ConnectionTest): Promise<void> {
  signal?.throwIfAborted();
  const socket = connect({ host: address, port });
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const late = (): Error =>
    Object.assign(new Error(`no connection within ${connectMs / 1000} s`), { code: "ETIMEDOUT" });
  const timer = setTimeout(() => reject(late()), connectMs);
  const abort = (): void => reject(signal?.reason as Error);
  signal?.addEventListener("abort", abort, { once: true });
  socket.once("connect", resolve);
  socket.once("error", reject);
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    socket.on("error", () => undefined);
    socket.destroy();
  }
}
