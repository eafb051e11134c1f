import type { Stack } from "@pko/api";
import { metadataOf, type Client } from "@pko/kube";

import { stacks } from "../../kinds.ts";

interface Reader {
  readonly client: Pick<Client, "find">;
  readonly signal?: AbortSignal;
}

/**
 * Whether the API server has this very Stack: the store may show one that does not exist any more, for example after etcd was restored.
 * The garbage collector deletes what is created for it at once, and each deletion would lead to another pass.
 */
export async function stackExists({ client, signal }: Reader, { metadata }: Stack): Promise<boolean> {
  const { name = "", namespace = "", uid } = metadata;
  const found = await client.find(metadataOf(stacks), { name, namespace }, signal ? { signal } : {});
  return found !== undefined && found.metadata.uid === uid;
}
