/** Everything that the rules of `why` may know about one Stack. Gathered by gather.ts with the user's own permissions. */
import type { Stack, Update, Workspace } from "@pko/api";
import type { ApiObject } from "@pko/kube";
import type { Lease } from "kubernetes-types/coordination/v1";
import type { Pod } from "kubernetes-types/core/v1";

import type { Hidden } from "../visibility.ts";

export interface StackFacts {
  readonly now: number;
  readonly namespace: string;
  readonly name: string;
  /** Undefined if there is no such Stack. */
  readonly stack?: Stack;
  readonly workspace?: Workspace;
  readonly pod?: ApiObject<Pod>;
  /** The newest first. */
  readonly updates: readonly Update[];
  /** What the record of the last update contains about the resources that failed, one text for each. */
  readonly failures?: readonly string[];
  /** The Stacks of the namespace that it needs, by name: undefined for one that does not exist. */
  readonly dependencies: ReadonlyMap<string, Stack | undefined>;
  readonly isNamespaceTerminating: boolean;
  readonly operator: OperatorFacts;
  readonly hidden: readonly Hidden[];
}

export type OperatorFacts =
  /** The Leases could not be read, so nothing is known. */
  | { readonly kind: "unknown" }
  /** No operator has ever led where the user may look. */
  | { readonly kind: "absent" }
  | { readonly kind: "present"; readonly lease: ApiObject<Lease> };
