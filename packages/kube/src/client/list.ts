/** Paginated lists. */
import type { ListOptions, ObjectList } from "./client.ts";
import { isExpired } from "./errors.ts";
import { arrayAt, objectAt, parseJson, textAt, trusted } from "./requests/json.ts";
import { acceptedType, collectionPath, type Query } from "./requests/paths.ts";
import { send, type RequestSettings } from "./requests/request.ts";
import type { KubeObject, Resource } from "../resource.ts";

export const defaultPageSize = 500;

/** All pages of one snapshot. If the snapshot expires on the way, everything is read again in a single page. */
export async function listAll<T extends KubeObject>(
  settings: RequestSettings,
  resource: Resource<T>,
  options: ListOptions<T> = {},
): Promise<ObjectList<T>> {
  const items: T[] = [];
  const take = (item: T): number => items.push(options.transform?.(item) ?? item);
  const read = (page: Query): Promise<Page<T>> => readPage(settings, resource, { options, page });
  const limit = options.pageSize ?? defaultPageSize;
  let page = await read({ limit });
  page.items.forEach(take);
  while (page.next !== undefined) {
    try {
      page = await read({ limit, continue: page.next });
    } catch (error) {
      if (!isExpired(error)) throw error;
      items.length = 0;
      page = await read({});
    }
    page.items.forEach(take);
  }
  return { resourceVersion: page.resourceVersion, items };
}

export interface Page<T> {
  readonly resourceVersion: string;
  readonly items: readonly T[];
  /** The continue token of the next page, if there is one. */
  readonly next: string | undefined;
}

export async function readPage<T extends KubeObject>(
  settings: RequestSettings,
  resource: Resource<T>,
  request: { readonly options: ListOptions<T>; readonly page: Query },
): Promise<Page<T>> {
  const { namespace, labelSelector, fieldSelector } = request.options;
  const text = await send(settings, {
    method: "GET",
    path: collectionPath(resource, namespace),
    query: { labelSelector, fieldSelector, ...request.page },
    accept: acceptedType(resource, "list"),
    repeatable: true,
    options: request.options,
  });
  const list = parseJson(text);
  const metadata = objectAt(list, "metadata");
  return {
    resourceVersion: textAt(metadata, "resourceVersion") ?? "",
    // The items in a list of a built-in kind have no apiVersion and kind.
    items: arrayAt(list, "items").map((item) =>
      Object.assign(trusted<T>(item), { apiVersion: resource.apiVersion, kind: resource.kind }),
    ),
    next: textAt(metadata, "continue"),
  };
}
