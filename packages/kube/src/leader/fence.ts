/** A client whose writes are only done while leading is certain: a deposed leader reads on, and writes nothing. */
import { underSignals, type MaybeSignal } from "../abort.ts";
import type { Client } from "../client/client.ts";
import { connect, type ConnectOptions } from "../client/connection.ts";
import type { Credentials } from "../client/credentials.ts";
import { fetchTransport, type Transport } from "../client/http.ts";
import { NotLeaderError, type Leadership } from "./leadership.ts";
import { refKey, type ObjectRef, type Resource } from "../resource.ts";

/**
 * Refuses writes with a NotLeaderError, and cuts off those under way when the term ends. The check is made when the
 * call is made; `connectFenced` makes it once more for each attempt.
 */
export function fence(client: Client, leadership: Leadership): Client {
  const guarded = <T>(name: string, signal: MaybeSignal, write: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    leadership.guard(name, (term) => underSignals([term, signal], write));
  return {
    get: (resource, ref, options) => client.get(resource, ref, options),
    find: (resource, ref, options) => client.find(resource, ref, options),
    list: (resource, options) => client.list(resource, options),
    watch: (resource, options) => client.watch(resource, options),
    podLogs: (pod, options) => client.podLogs(pod, options),
    discover: (kind, options) => client.discover(kind, options),
    serverTime: (options) => client.serverTime(options),
    create: (resource, object, options) =>
      guarded(operation("create", resource, object.metadata), options?.signal, (signal) =>
        client.create(resource, object, { ...options, signal }),
      ),
    apply: (resource, body, options) =>
      guarded(operation("apply", resource, body.metadata), options.signal, (signal) =>
        client.apply(resource, body, { ...options, signal }),
      ),
    patch: (resource, ref, change) =>
      guarded(operation("patch", resource, ref), change.signal, (signal) =>
        client.patch(resource, ref, { ...change, signal }),
      ),
    delete: (resource, ref, options) =>
      guarded(operation("delete", resource, ref), options?.signal, (signal) =>
        client.delete(resource, ref, { ...options, signal }),
      ),
    createToken: (account, request) =>
      guarded(`create token for ServiceAccount ${refKey(account)}`, request.signal, (signal) =>
        client.createToken(account, { ...request, signal }),
      ),
  };
}

interface FencedConnection {
  readonly credentials: Credentials;
  readonly leadership: Leadership;
  readonly options?: ConnectOptions;
}

/**
 * A fenced client of its own connection, which also checks at the last moment before each request leaves: a call may
 * have waited meanwhile, for fresh credentials or for its next attempt, and the process may have been stopped.
 */
export function connectFenced({ credentials, leadership, options = {} }: FencedConnection): Client {
  const transport = fenceTransport(options.transport ?? fetchTransport, leadership);
  return fence(connect(credentials, { ...options, transport }), leadership);
}

function fenceTransport(transport: Transport, leadership: Leadership): Transport {
  return async (request) => {
    if (request.method !== "GET" && !leadership.isCertain()) {
      throw new NotLeaderError(`${request.method} ${new URL(request.url).pathname}`);
    }
    return await transport(request);
  };
}

function operation(verb: string, resource: Resource, { name = "", namespace }: Partial<ObjectRef>): string {
  return `${verb} ${resource.kind} ${refKey({ name, ...(namespace !== undefined && { namespace }) })}`;
}
