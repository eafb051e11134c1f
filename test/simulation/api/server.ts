/** The HTTP interface of a simulated API server, without a network: requests in, responses out. */
import { isMap, type JsonMap } from "./fields.ts";
import { servedKinds } from "./kinds.ts";
import {
  notFound,
  StatusError,
  type Change,
  type ServedKind,
  type Storage,
  type Stored,
  type WriteOptions,
} from "./storage.ts";

export interface ApiRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly body?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly user: string;
}

export interface ApiReply {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface WatchRequest {
  readonly kind: ServedKind;
  readonly matches: (object: Stored) => boolean;
  readonly revision: number;
  readonly timeoutMs: number | undefined;
  readonly isMetadata: boolean;
}

export interface WatchEvent {
  readonly type: string;
  readonly object: JsonMap;
}

interface Addressed {
  readonly kind: ServedKind;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: string | undefined;
  readonly query: URLSearchParams;
  /** Whether a list or a watch of this path has the object. */
  readonly matches: (object: Stored) => boolean;
}

/** Throws a StatusError for what is not admitted. */
export type Admission = (request: {
  user: string;
  kind: ServedKind;
  before: Stored | undefined;
  after: Stored;
}) => void;

export class ApiFrontend {
  readonly #storage: Storage;
  readonly #admission: Admission;
  /** By path: most of them are requested often. */
  readonly #addressed = new Map<string, Addressed>();

  constructor(storage: Storage, admission: Admission = () => undefined) {
    this.#storage = storage;
    this.#admission = admission;
  }

  /** The watch that a request starts; undefined for any other request. */
  watchOf(request: ApiRequest): WatchRequest | undefined {
    if (request.method !== "GET" || !request.path.includes("watch=true")) return undefined;
    const { kind, matches, query } = this.#address(request.path);
    const seconds = query.get("timeoutSeconds");
    return {
      kind,
      matches,
      revision: Number(query.get("resourceVersion") ?? 0),
      timeoutMs: seconds === null ? undefined : Number(seconds) * 1000,
      isMetadata: isMetadataRequest(request),
    };
  }

  handle(request: ApiRequest): ApiReply {
    try {
      return this.#handle(request);
    } catch (error) {
      if (error instanceof StatusError) return statusReply(error);
      throw error;
    }
  }

  #handle(request: ApiRequest): ApiReply {
    if (request.path === "/version") return { status: 200, body: { major: "1", minor: "35" } };
    const created = request.method === "POST" ? 201 : 200;
    if (/\/selfsubjectaccessreviews(\?|$)/.test(request.path))
      return { status: created, body: { ...bodyOf(request), status: { allowed: true } } };
    // Nobody reads them, so they are not stored.
    if (isEvent(request)) return { status: created, body: bodyOf(request) };
    const target = this.#address(request.path);
    if (request.method === "GET") return this.#read(request, target);
    const written = this.#write(request, target);
    return { status: created, body: written };
  }

  #address(path: string): Addressed {
    const found = this.#addressed.get(path) ?? addressed(new URL(path, "https://api"));
    this.#addressed.set(path, found);
    return found;
  }

  #read(request: ApiRequest, { kind, namespace, name, query, matches }: Addressed): ApiReply {
    const view = isMetadataRequest(request) ? metadataOnly : (object: Stored): JsonMap => object;
    if (name !== undefined) {
      const found = this.#storage.find({ kind, namespace: namespace ?? "", name });
      if (!found) throw notFound(kind, name);
      return { status: 200, body: view(found) };
    }
    const all = this.#storage.list(kind).filter(matches);
    const start = Number(query.get("continue") ?? 0);
    const limit = Number(query.get("limit") ?? 0) || Infinity;
    const items = all.slice(start, start + limit).map(view);
    const isLast = start + limit >= all.length;
    const metadata = {
      resourceVersion: String(this.#storage.revision),
      ...(!isLast && { continue: String(start + limit) }),
    };
    return { status: 200, body: { apiVersion: kind.apiVersion, kind: `${kind.kind}List`, metadata, items } };
  }

  #write(request: ApiRequest, target: Addressed): Stored {
    const { kind, namespace = "", name, subresource, query } = target;
    const options: WriteOptions = {
      manager: query.get("fieldManager") ?? request.headers["user-agent"] ?? "unknown",
      isDryRun: query.get("dryRun") === "All",
      subresource,
      admit: (before, after) => this.#admission({ user: request.user, kind, before, after }),
    };
    const body = bodyOf(request);
    if (request.method === "POST") return this.#storage.create({ kind, namespace }, body, options);
    const path = { kind, namespace, name: name ?? "" };
    if (request.method === "DELETE") return this.#storage.delete(path, deleteRequest(body));
    const type = request.headers["content-type"] ?? "";
    if (type.includes("apply-patch")) return this.#storage.apply(path, body, options);
    if (type.includes("merge-patch")) return this.#storage.mergePatch(path, body, options);
    return this.#storage.jsonPatch(path, body as unknown as { op: string; path: string; value?: unknown }[], options);
  }
}

/** The event of a watch; undefined if it does not concern the watched objects. */
export function watchEvent({ matches, isMetadata, kind }: WatchRequest, change: Change): WatchEvent | undefined {
  if (change.kind !== kind) return undefined;
  const wasSelected = change.before !== undefined && matches(change.before);
  const isSelected = change.after !== undefined && matches(change.after);
  const view = isMetadata ? metadataOnly : (object: Stored): JsonMap => object;
  if (isSelected && change.after) return { type: wasSelected ? "MODIFIED" : "ADDED", object: view(change.after) };
  if (!wasSelected || !change.before) return undefined;
  const { metadata } = change.before;
  // An object that is no longer selected is reported as it was, with the version of the change.
  const last = change.last ?? { ...change.before, metadata: { ...metadata, resourceVersion: String(change.revision) } };
  return { type: "DELETED", object: view(last) };
}

export function statusReply({ code, reason, message }: StatusError): ApiReply {
  const body = { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message };
  return { status: code, body };
}

function addressed(url: URL): Addressed {
  const parts = url.pathname
    .split("/")
    .filter((part) => part !== "")
    .map(decodeURIComponent);
  const apiVersion = parts[0] === "api" ? (parts[1] ?? "") : `${parts[1]}/${parts[2]}`;
  const rest = parts.slice(parts[0] === "api" ? 2 : 3);
  const isNamespaced = rest[0] === "namespaces" && rest.length > 2;
  const namespace = isNamespaced ? rest[1] : undefined;
  const [plural = "", name, subresource] = isNamespaced ? rest.slice(2) : rest;
  const kind = servedKinds.find((each) => each.apiVersion === apiVersion && each.plural === plural);
  if (!kind) throw new StatusError(404, "NotFound", "the server could not find the requested resource");
  const query = url.searchParams;
  return { kind, namespace, name, subresource, query, matches: selection(query, namespace) };
}

/** A write of an Event of core/v1. */
export const isEvent = ({ method, path }: ApiRequest): boolean =>
  method !== "GET" && /^\/api\/v1\/namespaces\/[^/]+\/events\b/.test(path);

const bodyOf = ({ body }: ApiRequest): JsonMap => (body === undefined ? {} : (JSON.parse(body) as JsonMap));

function deleteRequest(body: JsonMap) {
  const preconditions: JsonMap = isMap(body["preconditions"]) ? body["preconditions"] : {};
  return {
    uid: preconditions["uid"] as string | undefined,
    resourceVersion: preconditions["resourceVersion"] as string | undefined,
    propagationPolicy: body["propagationPolicy"] as string | undefined,
    gracePeriodSeconds: body["gracePeriodSeconds"] as number | undefined,
    isDryRun: body["dryRun"] !== undefined,
  };
}

const isMetadataRequest = ({ headers }: ApiRequest): boolean =>
  headers["accept"]?.includes("as=PartialObjectMetadata") ?? false;

function metadataOnly({ metadata }: Stored): JsonMap {
  return { apiVersion: "meta.k8s.io/v1", kind: "PartialObjectMetadata", metadata };
}

function selection(query: URLSearchParams, namespace: string | undefined): (object: Stored) => boolean {
  const labels = requirements(query.get("labelSelector"));
  const fields = requirements(query.get("fieldSelector"));
  return ({ metadata }) =>
    (namespace === undefined || metadata.namespace === namespace) &&
    labels.every(([key, value, isEqual]) => (metadata.labels?.[key] === value) === isEqual) &&
    fields.every(([key, value, isEqual]) => (key === "metadata.name" ? metadata.name === value : true) === isEqual);
}

function requirements(text: string | null): [key: string, value: string, isEqual: boolean][] {
  return (text ?? "")
    .split(",")
    .filter((part) => part !== "")
    .map((part) => {
      const match = /^([^=!]+)(==|=|!=)(.*)$/.exec(part);
      if (!match) throw new Error(`the simulated API server does not support the selector ${part}`);
      return [match[1] ?? "", match[3] ?? "", match[2] !== "!="];
    });
}
