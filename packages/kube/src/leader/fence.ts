/** A client that writes only while leading is certain: a former leader can read, but not write. */
import { underSignals, type MaybeSignal } from "../abort.ts";
import type { Client } from "../client/client.ts";
import { connect, type ConnectOptions } from "../client/connection/connection.ts";
import type { Credentials } from "../client/connection/credentials.ts";
import { fetchTransport, type Transport } from "../client/requests/http.ts";
import { NotLeaderError, type Leadership } from "./leadership.ts";
import { refKey, type ObjectRef, type Resource } from "../resource.ts";

/**
 * Rejects writes with a NotLeaderError, and aborts those in flight when the term ends. It checks once per call;
 * `connectFenced` also checks before each attempt.
 */
export function fence(client: Client, leadership: Leadership): Client {
  const guarded = <T>(name: string, signal: MaybeSignal, write: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    leadership.guard(name, (term) => underSignals([term, signal], write));
  return {
    get: (resource, ref, options) => client.get(resource, ref, options),
    find: (resource, ref, options) => client.find(resource, ref, options),
    list: (resource, options) => client.list(resource, options),
    pages: (resource, options) => client.pages(resource, options),
    watch: (resource, options) => client.watch(resource, options),
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
  };
}

interface FencedConnection {
  readonly credentials: Credentials;
  readonly leadership: Leadership;
  readonly options?: ConnectOptions;
}

/**
 * A fenced client with its own connection, which also checks immediately before each request is sent: the call may have
 * waited for fresh credentials or for its next attempt, or the process may have been paused.
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
