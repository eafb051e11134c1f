/** A list page by page, for a caller that has no client. */
import type { ListOptions } from "./client.ts";
import { requestSettings, type ConnectOptions } from "./connection/connection.ts";
import type { Credentials } from "./connection/credentials.ts";
import { listPages as pagesOf, type Page } from "./list.ts";
import type { KubeObject, Resource } from "../resource.ts";

export interface PagesOptions<T extends KubeObject> extends ListOptions<T> {
  readonly connect?: ConnectOptions;
}

/** Throws an `ApiError` with `reason: "Expired"` if the snapshot expires on the way. */
export function listPages<T extends KubeObject>(
  credentials: Credentials,
  resource: Resource<T>,
  { connect, ...options }: PagesOptions<T> = {},
): AsyncGenerator<Page<T>> {
  return pagesOf(requestSettings(credentials, connect), resource, options);
}
