/** The calls that write, and which of them are idempotent. */
import { applyType } from "./apply-body.ts";
import type { ApplyBody, ApplyOptions, DeleteOptions, Patch, PatchOptions, WriteOptions } from "./client.ts";
import { collectionPath, objectPath, type Query } from "./requests/paths.ts";
import type { Call } from "./requests/request.ts";
import type { KubeObject, ObjectRef, Resource } from "../resource.ts";

export function createCall<T extends KubeObject>(resource: Resource<T>, body: T, options: PatchOptions = {}): Call {
  return {
    method: "POST",
    path: collectionPath(resource, namespaceOf(resource, body)),
    query: { ...writeQuery(options), fieldManager: options.fieldManager },
    body,
    // A second create would be rejected or, with generateName, create a second object.
    repeatable: options.dryRun ?? false,
    isDenialExpected: options.expectDenial,
    options,
  };
}

export function applyCall<T extends KubeObject>(
  resource: Resource<T>,
  body: ApplyBody<T>,
  options: ApplyOptions,
): Call {
  const { fieldManager, force = true, subresource } = options;
  const namespace = namespaceOf(resource, body);
  const ref = { name: body.metadata.name, ...(namespace !== undefined && { namespace }) };
  return {
    method: "PATCH",
    path: objectPath(resource, ref, subresource),
    query: { ...writeQuery(options), fieldManager, force },
    body,
    contentType: applyType,
    repeatable: true,
    options,
  };
}

export function patchCall(resource: Resource, ref: ObjectRef, change: { readonly patch: Patch } & PatchOptions): Call {
  const { patch, fieldManager, subresource } = change;
  return {
    method: "PATCH",
    path: objectPath(resource, ref, subresource),
    query: { ...writeQuery(change), fieldManager },
    body: patch.body,
    contentType: `application/${patch.type === "json" ? "json-patch" : "merge-patch"}+json`,
    // A merge patch describes the result, a JSON patch the operations.
    repeatable: patch.type === "merge" || (change.dryRun ?? false),
    isDenialExpected: change.expectDenial,
    options: change,
  };
}

export function deleteCall(resource: Resource, ref: ObjectRef, options: DeleteOptions = {}): Call {
  const { uid, resourceVersion, propagationPolicy, gracePeriodSeconds } = options;
  const preconditions = { uid, resourceVersion };
  // The API server ignores the query of a request with a body.
  const dryRun = options.dryRun ? ["All"] : undefined;
  return {
    method: "DELETE",
    path: objectPath(resource, ref),
    query: {},
    body: { apiVersion: "v1", kind: "DeleteOptions", preconditions, propagationPolicy, gracePeriodSeconds, dryRun },
    // Without a precondition, the second call might delete a new object with the same name.
    repeatable: uid !== undefined || resourceVersion !== undefined || (options.dryRun ?? false),
    options,
  };
}

function namespaceOf(
  resource: Resource,
  body: { readonly metadata: { name?: string; namespace?: string } },
): string | undefined {
  if (!resource.namespaced) return undefined;
  if (!body.metadata.namespace) throw new TypeError(`${resource.kind} "${body.metadata.name ?? ""}" needs a namespace`);
  return body.metadata.namespace;
}

function writeQuery(options: WriteOptions): Query {
  return { dryRun: options.dryRun ? "All" : undefined, fieldValidation: options.fieldValidation };
}
