/**
 * The paths of the Kubernetes API that the console passes on. A path is matched part by part, and the request to the API
 * server is built from the parts: nothing that the browser sent is passed on unread. Pure.
 */
import { approvalKind, leaseName, programKind, stackKind, updateKind, updateRecordKind, workspaceKind } from "@pko/api";
import { builtin, type ResourceNames } from "@pko/kube";

import { apiPrefix, limits, type WatchedResource } from "../shared/contract.ts";

type Method = "GET" | "POST" | "PATCH";

/** A request to the API server. */
export interface ApiRequest {
  readonly method: Method;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accepts: "object" | "log";
  /** What a body must be; absent if there is none. */
  readonly bodyKind?: "accessReview" | "approval" | "stackPatch";
  /** Of the objects in the body. */
  readonly ref?: { readonly namespace: string; readonly name?: string };
}

/** Of the core group: its fields are those that the operator writes and kubectl shows. */
const events: ResourceNames = { apiVersion: "v1", kind: "Event", plural: "events", namespaced: true };

export const watchable: Readonly<Record<WatchedResource, ResourceNames>> = {
  stacks: stackKind,
  programs: programKind,
  workspaces: workspaceKind,
  updates: updateKind,
  approvals: approvalKind,
  updaterecords: updateRecordKind,
  events,
  pods: builtin.pods,
};

const readable = Object.values(watchable);

type Values = Readonly<Record<string, RegExp>>;

const selector = /^[\w\-./=!,() ]{1,1024}$/;
const count = /^[1-9]\d{0,7}$/;
const yes = /^true$/;

const listParameters: Values = {
  limit: count,
  continue: /^[\w\-=.~]{1,4096}$/,
  labelSelector: selector,
  fieldSelector: selector,
  resourceVersion: /^\d{1,20}$/,
  resourceVersionMatch: /^(?:Exact|NotOlderThan)$/,
};

const logParameters: Values = {
  container: /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
  tailLines: count,
  sinceSeconds: count,
  sinceTime: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/,
  limitBytes: count,
  timestamps: yes,
  previous: yes,
};

const maxLogBytes = 16 * 1024 * 1024;

/** Undefined if it is not allowed. `pathname` is that of the console, with its prefix. */
export function allowedRequest(method: string, pathname: string, query: URLSearchParams): ApiRequest | undefined {
  const path = parsePath(pathname);
  if (!path) return undefined;
  switch (method) {
    case "GET":
      return readRequest(path, query);
    case "POST":
      return query.size === 0 ? createRequest(path) : undefined;
    case "PATCH":
      return query.size === 0 ? patchRequest(path) : undefined;
    default:
      return undefined;
  }
}

interface Path {
  readonly apiVersion: string;
  readonly namespace?: string;
  readonly plural: string;
  readonly name?: string;
  readonly subresource?: string;
}

const part = "[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?";
const shape = new RegExp(
  `^${apiPrefix}/(?:api/(?<core>v1)|apis/(?<group>${part}/v1(?:alpha1)?))(?:/namespaces/(?<namespace>${part})(?=/))?` +
    `/(?<plural>[a-z]+)(?:/(?<name>${part}))?(?:/(?<subresource>[a-z]+))?$`,
);

/** Names have neither escapes, nor dots as a whole part, nor empty parts: everything else does not match. */
function parsePath(pathname: string): Path | undefined {
  const { core, group, namespace, plural, name, subresource } = shape.exec(pathname)?.groups ?? {};
  if (plural === undefined) return undefined;
  return {
    apiVersion: core ?? group ?? "",
    plural,
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
    ...(subresource !== undefined && { subresource }),
  };
}

const isOf = ({ apiVersion, plural }: Path, resource: ResourceNames): boolean =>
  apiVersion === resource.apiVersion && plural === resource.plural;

function readRequest(path: Path, query: URLSearchParams): ApiRequest | undefined {
  const { namespace, name, subresource } = path;
  if (isOf(path, builtin.namespaces) && namespace === undefined && name === undefined) return list(path, query);
  if (isOf(path, builtin.leases)) return readLease(path, query);
  if (!readable.some((resource) => isOf(path, resource))) return undefined;
  if (name === undefined) return list(path, query);
  if (namespace === undefined) return undefined;
  if (subresource !== undefined)
    return isOf(path, builtin.pods) && subresource === "log" ? log(path, query) : undefined;
  return query.size === 0 ? { method: "GET", path: apiPath(path), query, accepts: "object" } : undefined;
}

/** Only the Lease of the operator. */
function readLease(path: Path, query: URLSearchParams): ApiRequest | undefined {
  if (query.size > 0 || path.subresource !== undefined) return undefined;
  const request = { method: "GET", path: apiPath(path), accepts: "object" } as const;
  if (path.name === undefined) {
    return { ...request, query: new URLSearchParams({ fieldSelector: `metadata.name=${leaseName}` }) };
  }
  return path.name === leaseName && path.namespace !== undefined ? { ...request, query } : undefined;
}

/** Each page has at most so many objects. */
function list(path: Path, given: URLSearchParams): ApiRequest | undefined {
  const query = checked(given, listParameters);
  if (!query || path.subresource !== undefined) return undefined;
  query.set("limit", String(Math.min(limits.pageSize, Number(query.get("limit") ?? limits.pageSize))));
  return { method: "GET", path: apiPath(path), query, accepts: "object" };
}

/** What has been written so far: the stream follows a log. */
function log(path: Path, given: URLSearchParams): ApiRequest | undefined {
  const query = checked(given, logParameters);
  if (!query) return undefined;
  query.set("limitBytes", String(Math.min(maxLogBytes, Number(query.get("limitBytes") ?? maxLogBytes))));
  return { method: "GET", path: apiPath(path), query, accepts: "log" };
}

/** The known parameters, each once; undefined if there is another one. `watch` and `follow` are none. */
function checked(given: URLSearchParams, values: Values): URLSearchParams | undefined {
  const query = new URLSearchParams();
  for (const [name, value] of given) {
    if (query.has(name) || !Object.hasOwn(values, name) || !values[name]?.test(value)) return undefined;
    query.set(name, value);
  }
  return query;
}

const accessReviews: ResourceNames = {
  apiVersion: "authorization.k8s.io/v1",
  kind: "SelfSubjectAccessReview",
  plural: "selfsubjectaccessreviews",
  namespaced: false,
};

const fieldManager = "pulumi-console";

function createRequest(path: Path): ApiRequest | undefined {
  const { namespace, name } = path;
  const request = { method: "POST", path: apiPath(path), accepts: "object" } as const;
  if (name !== undefined) return undefined;
  if (isOf(path, accessReviews) && namespace === undefined) {
    return { ...request, query: new URLSearchParams(), bodyKind: "accessReview" };
  }
  if (isOf(path, approvalKind) && namespace !== undefined) {
    const query = new URLSearchParams({ fieldManager, fieldValidation: "Strict" });
    return { ...request, query, bodyKind: "approval", ref: { namespace } };
  }
  return undefined;
}

function patchRequest(path: Path): ApiRequest | undefined {
  const { namespace, name, subresource } = path;
  if (!isOf(path, stackKind) || namespace === undefined || name === undefined || subresource !== undefined) {
    return undefined;
  }
  const query = new URLSearchParams({ fieldManager, fieldValidation: "Strict" });
  const ref = { namespace, name };
  return { method: "PATCH", path: apiPath(path), query, accepts: "object", bodyKind: "stackPatch", ref };
}

function apiPath({ apiVersion, namespace, plural, name, subresource }: Path): string {
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const within = namespace === undefined ? [] : ["namespaces", namespace];
  return [root, ...within, plural, name, subresource].filter((each) => each !== undefined).join("/");
}
