/** The objects of one watch, kept up to date by the messages of the stream. It notifies nobody: see data/watches.ts. */
import type { StreamMessage } from "../../shared/contract.ts";

export interface ObjectMeta {
  readonly metadata: { readonly namespace?: string; readonly name?: string };
}

export type CollectionState =
  | { readonly kind: "loading" }
  | { readonly kind: "synced" }
  | { readonly kind: "denied"; readonly permission: string; readonly message: string };

export class Collection<T extends ObjectMeta> {
  readonly objects = new Map<string, T>();
  state: CollectionState = { kind: "loading" };
  /** The last problem, which is retried; empty if there is none. */
  problem = "";
  /** Where the watch continues; undefined until a list is complete. */
  resourceVersion: string | undefined;
  /** While a list is read: what it contained so far. */
  #listed: Set<string> | undefined = new Set();

  /** The stream is opened again. Without a version the list is read again. */
  reopened(): void {
    if (this.resourceVersion === undefined) this.#listed = new Set();
    if (this.state.kind === "denied") this.state = { kind: "loading" };
  }

  receive(message: StreamMessage): void {
    switch (message.type) {
      case "object":
        this.#receiveObject(message);
        return;
      case "synced":
        this.#synced(message.resourceVersion);
        return;
      case "reset":
        this.resourceVersion = undefined;
        this.#listed = new Set();
        return;
      case "denied":
        this.objects.clear();
        this.state = { kind: "denied", permission: message.permission, message: message.message };
        return;
      case "error":
        this.problem = message.message;
        return;
      case "line":
      case "end":
        return;
    }
  }

  #receiveObject({ change, object, resourceVersion }: Extract<StreamMessage, { type: "object" }>): void {
    const received = object as T;
    const key = keyOf(received);
    if (change === "DELETED") this.objects.delete(key);
    else this.objects.set(key, received);
    this.problem = "";
    if (this.#listed) this.#listed.add(key);
    // A version from the middle of a list would skip the rest of the list.
    else this.resourceVersion = resourceVersion;
  }

  /** What the new list does not contain was deleted while the stream was closed. */
  #synced(resourceVersion: string): void {
    const listed = this.#listed;
    if (listed) {
      for (const key of this.objects.keys()) if (!listed.has(key)) this.objects.delete(key);
    }
    this.#listed = undefined;
    this.resourceVersion = resourceVersion;
    this.state = { kind: "synced" };
    this.problem = "";
  }
}

export const keyOf = ({ metadata }: ObjectMeta): string => `${metadata.namespace ?? ""}/${metadata.name ?? ""}`;
