/** A list page by page, for a caller that does not keep all objects. */
import type { ListOptions } from "./client.ts";
import { requestSettings, type ConnectOptions } from "./connection/connection.ts";
import type { Credentials } from "./connection/credentials.ts";
import { defaultPageSize, readPage, type Page } from "./list.ts";
import type { KubeObject, Resource } from "../resource.ts";

export interface PagesOptions<T extends KubeObject> extends ListOptions<T> {
  readonly connect?: ConnectOptions;
}

/** Throws an `ApiError` with `reason: "Expired"` if the snapshot expires on the way. */
export async function* listPages<T extends KubeObject>(
  credentials: Credentials,
  resource: Resource<T>,
  { connect, ...options }: PagesOptions<T> = {},
): AsyncGenerator<Page<T>> {
  const settings = requestSettings(credentials, connect);
  const limit = options.pageSize ?? defaultPageSize;
  let next: string | undefined;
  do {
    const page = await readPage(settings, resource, {
      options,
      page: { limit, ...(next !== undefined && { continue: next }) },
    });
    yield page;
    ({ next } = page);
  } while (next !== undefined);
}
