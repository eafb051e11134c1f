/** Objects as they are now and as they change, across watches that the server ends. */
import { isExpired, isTransient, type Client, type KubeObject, type Resource } from "@pko/kube";

export type Change<T> =
  /** All that exist: at the start, and after a watch has ended. */
  | { readonly kind: "list"; readonly items: readonly T[] }
  | { readonly kind: "changed"; readonly object: T }
  | { readonly kind: "deleted"; readonly object: T };

export interface Selection {
  readonly namespace: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly signal: AbortSignal;
}

/** Never ends by itself: the caller stops, or the signal aborts. */
export async function* followObjects<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  selection: Selection,
): AsyncGenerator<Change<T>, never> {
  for (;;) {
    const { items, resourceVersion } = await client.list(resource, selection);
    yield { kind: "list", items };
    try {
      for await (const event of client.watch(resource, { ...selection, resourceVersion })) {
        if (event.type === "BOOKMARK") continue;
        yield { kind: event.type === "DELETED" ? "deleted" : "changed", object: event.object };
      }
    } catch (error) {
      if (!isExpired(error) && !isTransient(error)) throw error;
    }
  }
}
