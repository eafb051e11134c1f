/** Creates the Secrets of a run's result. A failure is reported and not retried, because the Update has ended. */
import { ApiError, builtin, type ApiObject } from "@pko/kube";
import type { Secret } from "kubernetes-types/core/v1";

import * as messages from "../messages.ts";
import { createOwned, type OwnedWriter } from "./create-owned.ts";

export interface CreatedSecret {
  readonly name: string;
  /** Present if the Secret was not created: its name is taken, or a quota, webhook, role or deleted namespace prevents it. */
  readonly failure?: string;
}

export async function createSecret(writer: OwnedWriter, secret: ApiObject<Secret>): Promise<CreatedSecret> {
  const { name = "" } = secret.metadata;
  try {
    const occupant = await createOwned(writer, builtin.secrets, secret);
    if (occupant === undefined) return { name };
    return { name, failure: messages.secretNotCreated(name, messages.secretNameTaken(occupant)) };
  } catch (error) {
    if (!isRejection(error)) throw error;
    return { name, failure: messages.secretNotCreated(name, error.explanation) };
  }
}

const rejections: ReadonlySet<number> = new Set([400, 403, 413, 422]);

/** A write that would be rejected again. */
export const isRejection = (error: unknown): error is ApiError =>
  error instanceof ApiError && rejections.has(error.status);
