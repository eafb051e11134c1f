/** Reads that may be forbidden: what the user cannot see is reported, and the command continues without it. */
import { isNotFound, missingPermission, type MissingPermission } from "@pko/kube";

import { isKindUnknown, permissionText } from "./errors.ts";

/** Something that a command could not read. */
export interface Hidden {
  /** For people: "the pods of the namespace". */
  readonly what: string;
  readonly permission: MissingPermission;
}

export type Seen<T> =
  | { readonly kind: "seen"; readonly value: T }
  | { readonly kind: "absent" }
  | { readonly kind: "hidden"; readonly hidden: Hidden };

export async function look<T>(what: string, read: Promise<T>): Promise<Seen<T>> {
  try {
    return { kind: "seen", value: await read };
  } catch (error) {
    if (isNotFound(error) || isKindUnknown(error)) return { kind: "absent" };
    const permission = missingPermission(error);
    if (permission) return { kind: "hidden", hidden: { what, permission } };
    throw error;
  }
}

export const seenValue = <T>(seen: Seen<T>): T | undefined => (seen.kind === "seen" ? seen.value : undefined);

export const hiddenIn = (...all: readonly Seen<unknown>[]): Hidden[] =>
  all.flatMap((seen) => (seen.kind === "hidden" ? [seen.hidden] : []));

export const hiddenText = ({ what, permission }: Hidden): string =>
  hiddenTextOf({ what, permission: permissionText(permission) });

/** As in a document. */
export const hiddenTextOf = ({ what, permission }: { readonly what: string; readonly permission: string }): string =>
  `Cannot see ${what}: you do not have permission to ${permission}.`;
