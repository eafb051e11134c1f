/** Writes that the API server rejects, and would reject again. */
import { ApiError, isConflict, isNamespaceTerminating } from "@pko/kube";

export interface Rejection {
  /** "denied": by a quota, a webhook, or missing permissions. */
  readonly kind: "namespaceTerminating" | "invalid" | "denied";
  /** The API server's. */
  readonly explanation: string;
}

/** Undefined for errors that may be transient. */
export function rejectionIn(error: unknown): Rejection | undefined {
  if (!(error instanceof ApiError) || isConflict(error)) return undefined;
  const { status, explanation } = error;
  if (isNamespaceTerminating(error)) return { kind: "namespaceTerminating", explanation };
  if (status === 422) return { kind: "invalid", explanation };
  return status === 400 || status === 403 ? { kind: "denied", explanation } : undefined;
}
