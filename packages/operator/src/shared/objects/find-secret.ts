/** Reads a Secret that a user names, and that the operator may not be permitted to read. */
import { builtin, isForbidden, type ApiObject, type Client } from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

interface SecretRef {
  readonly namespace: string;
  readonly name: string;
}

/** Undefined if it does not exist. */
export async function findSecret(
  client: Client,
  ref: SecretRef,
  signal: AbortSignal | undefined,
): Promise<ApiObject<Secret> | "forbidden" | undefined> {
  try {
    return await client.find(builtin.secrets, ref, signal ? { signal } : {});
  } catch (error) {
    if (isForbidden(error)) return "forbidden";
    throw error;
  }
}
