/** What an update runs for, and its progress. */
import { timestamp } from "@pko/kube";

import { truncate } from "../../shared/truncate.ts";
import type { Trigger, TriggerReason } from "../history/trigger.ts";
import type { UpdateFacts } from "../view.ts";

/** An Update that exists or is being created. */
export type NamedUpdate = Pick<UpdateFacts, "type" | "name"> & Partial<Pick<UpdateFacts, "isPlan">>;

/** A plan for a destroy destroys nothing. */
const operation = ({ type, isPlan = false }: Omit<NamedUpdate, "name">): string => (isPlan ? "preview" : type);

const reasons: Readonly<Record<TriggerReason, string>> = {
  first: "the first update",
  generation: "the changed spec",
  revision: "the new revision",
  request: "the reconcile request",
  inputs: "changed outputs of other Stacks, or changed values of Secrets and ConfigMaps",
  retry: "a retry",
  resync: "the periodic resync",
  drift: "the correction of drift",
  destroy: "the deletion of the Stack",
};

/** What an update runs for. */
export function purpose({ reason, trigger }: { reason: TriggerReason; trigger: Trigger }): string {
  if (reason === "drift" && trigger.type === "refresh") return driftCheck;
  return reason === "revision" ? `${reasons[reason]} ${trigger.revision}` : reasons[reason];
}

const longestRequest = 256;

/** The same in more detail, for the Update and the record of its run. */
export function cause({ reason, trigger }: { reason: TriggerReason; trigger: Trigger }): string {
  const what = purpose({ reason, trigger });
  if (reason === "request") return `${what} ${truncate(trigger.reconcileRequest, longestRequest)}`;
  if (reason === "drift" && trigger.driftRequest)
    return `${what}, requested as ${truncate(trigger.driftRequest, longestRequest)}`;
  return what;
}

export const retry = "a retry";
export const periodicResync = "the periodic resync";
export const driftCheck = "the drift check";
export const retryTime = (at: number): string => `\nIt will be retried at ${timestamp(at)}.`;

export const endOfUpdate = (name: string): string => `the end of Update ${name}`;

export const starting = (update: NamedUpdate, what: string): string =>
  `The ${operation(update)} ${update.name} is being started for ${what}.`;

export const cancelling = (update: NamedUpdate): string =>
  `The ${operation(update)} ${update.name} is being cancelled, as requested.`;

export const withdrawing = (update: NamedUpdate, reason: string): string =>
  `The ${operation(update)} ${update.name} has not started and is being withdrawn, because ${reason}.`;

export const withdrawalReasons = {
  stackDeleted: "the Stack is being deleted",
  stackProtected: "the Stack is protected",
  destroyDisabled: "destroyOnFinalize is no longer set",
  suspended: "nothing may start while the Stack is suspended",
  windowClosed: "no update window is open",
  workspaceMissing: "its Workspace no longer exists",
  superseded: "its Workspace is not ready and a newer update is due",
} as const;

/** What happens when the running update ends. */
export type AfterUpdate = "nothing" | "suspend" | "destroy" | "delete" | "keep";

function afterwards({ name }: NamedUpdate, after: AfterUpdate): string {
  switch (after) {
    case "nothing":
      return "";
    case "suspend":
      return "; nothing starts when it ends, because the Stack is suspended";
    case "destroy":
      return "; the resources will be destroyed when it ends";
    case "keep":
      return "; the Stack is being deleted, but it is protected, so nothing will be destroyed";
    case "delete":
      return `; the Stack will be deleted when it ends, and its resources are kept; to cancel it, delete Update ${name}`;
  }
}

export const stuck = (update: UpdateFacts, after: AfterUpdate): string =>
  `The ${operation(update)} ${update.name} is stuck${afterwards(update, after)}. ${update.stall?.message ?? ""}`;

export function running(update: UpdateFacts, after: AfterUpdate): string {
  return `The ${operation(update)} ${update.name} ${progress(update)}${afterwards(update, after)}.`;
}

function progress({ deleting, startedAt }: UpdateFacts): string {
  if (deleting) return "is being cancelled";
  return startedAt === undefined ? "is waiting for its Workspace" : `has been running since ${timestamp(startedAt)}`;
}
