/** API discovery: the served versions of a kind, and its resource name in each. */
import type { CallOptions } from "./client.ts";
import { isNotFound } from "./errors.ts";
import { arrayAt, isObject, objectAt, parseJson, textAt } from "./requests/json.ts";
import { send, type RequestSettings } from "./requests/request.ts";
import type { ResourceNames } from "../resource.ts";

/** A kind in any version; the core group's name is empty. */
export interface GroupKind {
  readonly group: string;
  readonly kind: string;
}

/** Every version that serves the kind, the server's preferred one first; empty when the kind does not exist. */
export async function discover(
  settings: RequestSettings,
  { group, kind }: GroupKind,
  options?: CallOptions,
): Promise<ResourceNames[]> {
  const read = (path: string): Promise<unknown> => readIfServed(settings, path, options);
  const found: ResourceNames[] = [];
  for (const apiVersion of group === "" ? ["v1"] : versionsIn(await read(`/apis/${encodeURIComponent(group)}`))) {
    const resources = arrayAt(await read(`${group === "" ? "/api" : "/apis"}/${apiVersion}`), "resources");
    // Names with a slash are subresources, which may have the same kind.
    const match = resources.find((each) => textAt(each, "kind") === kind && !textAt(each, "name")?.includes("/"));
    const plural = textAt(match, "name");
    if (plural === undefined) continue;
    found.push({ apiVersion, kind, plural, namespaced: isObject(match) && match["namespaced"] === true });
  }
  return found;
}

function versionsIn(group: unknown): string[] {
  const preferred = textAt(objectAt(group, "preferredVersion"), "groupVersion");
  const all = arrayAt(group, "versions").flatMap((version) => textAt(version, "groupVersion") ?? []);
  return [...new Set([...(preferred === undefined ? [] : [preferred]), ...all])];
}

/** Undefined for a group or a version that is not served. */
async function readIfServed(settings: RequestSettings, path: string, options?: CallOptions): Promise<unknown> {
  try {
    return parseJson(await send(settings, { method: "GET", path, repeatable: true, options }));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
