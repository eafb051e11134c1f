/** Rules about the WorkspaceClass of the namespace. */
import { jittered } from "../../shared/pauses.ts";
import { cacheClaim } from "../classes/caches.ts";
import * as messages from "../messages.ts";
import { decide, intervals, missingPause, type WorkspaceRule } from "./decision.ts";
import { objectsToApply } from "./objects.ts";

/** The cache of Workspaces is ahead of the cache of namespaces: limits and policies may apply. */
export const classUnknown: WorkspaceRule = (view) => {
  const { workspaceClass, workspace } = view;
  if (workspaceClass.kind !== "unknown") return undefined;
  const waiting = { kind: "waiting", message: messages.namespaceUnknown, isStuck: false } as const;
  return decide(workspace.status ? { kind: "unchanged" } : waiting, missingPause(view));
};

export const classConflict: WorkspaceRule = ({ workspaceClass, workspace }) => {
  if (workspaceClass.kind !== "conflict") return undefined;
  const { namespace = "" } = workspace.metadata;
  const message = messages.classConflict(namespace, workspaceClass.names);
  const requeueAfterMs = jittered(intervals.recheck, workspace.metadata.uid ?? "");
  return decide({ kind: "misconfigured", message, reason: "WorkspaceClassConflict" }, requeueAfterMs);
};

/** The claim is not watched. A pod that the StatefulSet's controller created again may wait for a claim that was deleted. */
export const cacheClaimMissing: WorkspaceRule = (view) => {
  const { workspaceClass, workspace, hasCacheClaim, pod } = view;
  const isNeeded = objectsToApply(view) !== undefined || pod?.isUnschedulable === true;
  if (workspaceClass.kind !== "one" || hasCacheClaim || !isNeeded) return undefined;
  const claim = cacheClaim(workspaceClass, workspace.metadata.namespace ?? "");
  if (!claim) return undefined;
  return decide({ kind: "unchanged" }, undefined, [{ kind: "ensureCacheClaim", applied: workspaceClass, claim }]);
};
