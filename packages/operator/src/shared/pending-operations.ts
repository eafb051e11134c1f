/** What to report about operations that were interrupted, so that Pulumi does not know their results. Pure. */
import type { UpdateStatus } from "@pko/api";

import { truncate } from "./truncate.ts";

type PendingOperations = NonNullable<UpdateStatus["pendingOperations"]>;

const mostShown = 5;
const longestUrn = 300;

/** What happened, why it matters, and what to do. Without a period at its end. */
export function pendingOperationsMessage(operations: PendingOperations): string {
  const shown = operations.slice(0, mostShown).map(({ operation, urn }) => `${operation} ${truncate(urn, longestUrn)}`);
  const more = operations.length > mostShown ? [`and ${operations.length - mostShown} more`] : [];
  return (
    `the state has pending operations, because an update was interrupted: ${[...shown, ...more].join("; ")}. ` +
    `Pulumi does not know whether they succeeded. ${remedyFor(operations)}`
  );
}

function remedyFor(operations: PendingOperations): string {
  return operations.some(({ operation }) => operation === "creating")
    ? "Check whether the resources that were being created exist: the next update creates them again. " +
        "Delete or import those that exist, and then run an Update of type refresh with clearPendingCreates: true"
    : "The next update with refresh: true reads the resources and removes the pending operations from the state";
}
