/** What the steps of a Stack's reconcile share. */
import { isDeepStrictEqual } from "node:util";
import type { Stack, StackStatus, Update } from "@pko/api";
import { isNotFound, type Client, type Performed, type Store } from "@pko/kube";

import type { Slots } from "../../shared/channels/slots.ts";
import type { StackView } from "../view.ts";

export interface Performer {
  readonly slots: Pick<Slots, "claim">;
  readonly client: Client;
  readonly updates: Store<Update>;
  readonly signal: AbortSignal;
}

export type PerformedStep = Performed<StackView>;

export const replan = (facts: Partial<StackView>): PerformedStep => ({ kind: "replan", facts });

export const stackRef = ({ stack }: StackView): { name: string; namespace: string } => ({
  name: stack.metadata.name ?? "",
  namespace: stack.metadata.namespace ?? "",
});

/** Whether the Stack of the API server is the one on which the plan is based. */
export function isSameStack({ metadata, status }: Stack, { stack: observed }: StackView): boolean {
  return (
    metadata.uid === observed.metadata.uid &&
    metadata.generation === observed.metadata.generation &&
    Boolean(metadata.deletionTimestamp) === Boolean(observed.metadata.deletionTimestamp) &&
    isDeepStrictEqual(historyOf(status), historyOf(observed.status))
  );
}

/** What the names of the next Updates depend on, and the Updates that are kept. */
function historyOf({ lastUpdate, approval, drift }: StackStatus = {}): readonly (string | undefined)[] {
  return [
    lastUpdate?.name,
    lastUpdate?.lastResyncTime,
    approval?.updateName,
    drift?.checkedAt,
    drift?.updateName,
    drift?.corrected?.updateName,
  ];
}

export async function ignoreNotFound(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
