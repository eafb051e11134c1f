/** Paginated lists. */
import type { ListOptions, ObjectList } from "./client.ts";
import { isExpired } from "./errors.ts";
import { arrayAt, objectAt, parseJson, textAt, trusted } from "./requests/json.ts";
import { acceptedType, collectionPath, type Query } from "./requests/paths.ts";
import { send, type RequestSettings } from "./requests/request.ts";
import type { KubeObject, Resource } from "../resource.ts";

const defaultPageSize = 500;

/** All pages of one snapshot. If the snapshot expires on the way, everything is read again in a single page. */
export async function listAll<T extends KubeObject>(
  settings: RequestSettings,
  resource: Resource<T>,
  options: ListOptions<T> = {},
): Promise<ObjectList<T>> {
  try {
    return await joined(listPages(settings, resource, options), options);
  } catch (error) {
    if (!isExpired(error)) throw error;
    return await joined(listPages(settings, resource, { ...options, pageSize: 0 }), options);
  }
}

async function joined<T extends KubeObject>(
  pages: AsyncIterable<Page<T>>,
  { transform = (object) => object }: ListOptions<T>,
): Promise<ObjectList<T>> {
  const items: T[] = [];
  let resourceVersion = "";
  for await (const page of pages) {
    for (const item of page.items) items.push(transform(item));
    ({ resourceVersion } = page);
  }
  return { resourceVersion, items };
}

/** Throws an `ApiError` with `reason: "Expired"` if the snapshot expires on the way. */
export async function* listPages<T extends KubeObject>(
  settings: RequestSettings,
  resource: Resource<T>,
  options: ListOptions<T> = {},
): AsyncGenerator<Page<T>> {
  const limit = options.pageSize ?? defaultPageSize;
  const read = (token?: string): Promise<Page<T>> =>
    readPage(settings, resource, { options, page: { limit, continue: token } });
  let pending: Promise<Page<T>> | undefined = read();
  while (pending) {
    const page: Page<T> = await pending;
    const { next } = page;
    const readNext = (): Promise<Page<T>> | undefined => (next === undefined ? undefined : read(next));
    const prefetched = options.prefetch ? readNext() : undefined;
    // The caller may not request it.
    prefetched?.catch(() => undefined);
    yield page;
    pending = prefetched ?? readNext();
  }
}

export interface Page<T> {
  readonly resourceVersion: string;
  readonly items: readonly T[];
  /** The continue token of the next page, if there is one. */
  readonly next: string | undefined;
}

async function readPage<T extends KubeObject>(
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
