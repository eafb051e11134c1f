/** A client that calls the API server over HTTPS. */
import type { Client, WatchEvent, WatchOptions } from "../client.ts";
import { systemClock, type Clock } from "../../clock.ts";
import type { Credentials } from "./credentials.ts";
import { discover } from "../discovery.ts";
import { isNotFound } from "../errors.ts";
import { fetchTransport, type Transport } from "../requests/http.ts";
import { parseJson, trusted } from "../requests/json.ts";
import { listAll, listPages } from "../list.ts";
import { acceptedType, collectionPath, objectPath } from "../requests/paths.ts";
import {
  describe,
  explain,
  open,
  send,
  type ApiResponse,
  type Call,
  type RequestSettings,
} from "../requests/request.ts";
import type { KubeObject, Resource } from "../../resource.ts";
import { serverTime } from "../requests/server-time.ts";

import { parseWatchEvent, readLines } from "../watch.ts";
import { applyCall, createCall, deleteCall, patchCall } from "../writes.ts";

export interface ConnectOptions {
  readonly userAgent?: string;
  /** For a call with all its attempts. */
  readonly timeoutMs?: number;
  /** For one attempt of a call. */
  readonly attemptTimeoutMs?: number;
  readonly attempts?: number;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly transport?: Transport;
  /** Called for each attempt of a call when its response arrives or it fails. */
  readonly onResponse?: (response: ApiResponse) => void;
}

export function connect(credentials: Credentials, options: ConnectOptions = {}): Client {
  const settings = requestSettings(credentials, options);
  return {
    ...readers(settings),
    ...writers(settings),
    discover: async (kind, callOptions) => discover(settings, kind, callOptions),
    serverTime: async (callOptions) => serverTime(settings, callOptions),
  };
}

export function requestSettings(credentials: Credentials, options: ConnectOptions = {}): RequestSettings {
  return {
    credentials,
    transport: options.transport ?? fetchTransport,
    clock: options.clock ?? systemClock,
    userAgent: options.userAgent ?? "kube",
    timeoutMs: options.timeoutMs ?? 30_000,
    attemptTimeoutMs: options.attemptTimeoutMs ?? 10_000,
    retry: { attempts: options.attempts ?? 5, baseMs: 100, maxMs: 5000, random: options.random ?? Math.random },
    onResponse: options.onResponse ?? (() => undefined),
  };
}

type Readers = Pick<Client, "get" | "find" | "list" | "pages" | "watch">;

function readers(settings: RequestSettings): Readers {
  const get: Client["get"] = async (resource, ref, options) =>
    object(settings, {
      method: "GET",
      path: objectPath(resource, ref),
      accept: acceptedType(resource, "object"),
      repeatable: true,
      options,
    });
  return {
    get,
    async find(resource, ref, options) {
      try {
        return await get(resource, ref, options);
      } catch (error) {
        if (isNotFound(error)) return undefined;
        throw error;
      }
    },
    list: async (resource, options) => listAll(settings, resource, options),
    pages: (resource, options) => listPages(settings, resource, options),
    watch: (resource, options) => watch(settings, resource, options),
  };
}

async function* watch<T extends KubeObject>(
  settings: RequestSettings,
  resource: Resource<T>,
  options: WatchOptions,
): AsyncGenerator<WatchEvent<T>> {
  const call: Call = {
    method: "GET",
    path: collectionPath(resource, options.namespace),
    query: {
      watch: true,
      allowWatchBookmarks: true,
      resourceVersion: options.resourceVersion,
      labelSelector: options.labelSelector,
      fieldSelector: options.fieldSelector,
      timeoutSeconds: options.serverTimeoutSeconds,
    },
    accept: acceptedType(resource, "object"),
    repeatable: true,
    options,
  };
  const stream = await open(settings, call);
  try {
    for await (const line of readLines(stream.body)) {
      const event = parseWatchEvent<T>(describe(call), line);
      if (event) yield event;
    }
  } catch (error) {
    throw explain(call, error);
  } finally {
    stream.close();
  }
}

type Writers = Pick<Client, "create" | "apply" | "patch" | "delete">;

function writers(settings: RequestSettings): Writers {
  return {
    create: async (resource, body, options) => object(settings, createCall(resource, body, options)),
    apply: async (resource, body, options) => object(settings, applyCall(resource, body, options)),
    patch: async (resource, ref, change) => object(settings, patchCall(resource, ref, change)),
    async delete(resource, ref, options) {
      await send(settings, deleteCall(resource, ref, options));
    },
  };
}

/** The object in the response to a call. */
async function object<T extends KubeObject>(settings: RequestSettings, call: Call): Promise<T> {
  return trusted<T>(parseJson(await send(settings, call)));
}
