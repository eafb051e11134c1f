/** What the Workspace and its pod mean for an Update. Pure: the same facts are derived from a store and from the API server. */
import { pulumiContainer, type Update, type Workspace } from "@pko/api";
import { defined, type ApiObject } from "@pko/kube";
import type { WorkspaceRef } from "@pko/rpc";
import type { Pod } from "kubernetes-types/core/v1";

import { agentPort } from "../../agents/agents.ts";
import { overduePod } from "../../shared/pods/lost-node.ts";
import { referencesHashAnnotation } from "../../shared/pods/workspace-pod.ts";
import { findCondition } from "../../shared/objects/conditions.ts";
import { hasStackOf, stacksOf } from "../../shared/updates.ts";
import * as messages from "../messages.ts";
import type { Address, PodFacts, WorkspaceFacts } from "../view.ts";

export function workspaceRefOf({ metadata, spec }: Update): WorkspaceRef {
  return { namespace: metadata.namespace ?? "", name: spec?.workspaceName ?? "" };
}

export function workspaceFacts(workspace: Workspace | undefined, update: Update): WorkspaceFacts {
  if (!workspace) return { state: "missing" };
  if (workspace.metadata.deletionTimestamp !== undefined) return { state: "deleting" };
  const problem = readinessProblem(workspace);
  if (!hasStackOf(workspace, update)) {
    return { state: "otherStack", stacks: stacksOf(workspace), isPrepared: problem === undefined };
  }
  if (problem !== undefined) return { state: "notReady", message: problem };
  const address = addressOf(workspace);
  return address ? { state: "ready", address } : { state: "idle" };
}

function readinessProblem(workspace: Workspace): string | undefined {
  const { metadata, status } = workspace;
  if (status?.observedGeneration !== metadata.generation) return messages.workspaceUnprocessed;
  const ready = findCondition(workspace, "Ready");
  return ready?.status === "True" ? undefined : ready?.message || messages.workspacePreparing;
}

/** Parses `<ip>:<port>`; an IPv6 address is in brackets. */
function addressOf(workspace: Workspace | undefined): Address | undefined {
  const match = /^\[?([^\]]+)\]?:(\d+)$/.exec(workspace?.status?.address ?? "");
  return match?.[1] === undefined ? undefined : { host: match[1], port: Number(match[2]) };
}

/** Without the Workspace, the agent's port is the default one. */
export function podFacts(pod: ApiObject<Pod>, ref: WorkspaceRef, workspace?: Workspace): PodFacts | undefined {
  const { metadata, status } = pod;
  // Evicted pods still exist as objects, but nothing runs in them.
  if (status?.phase === "Failed" || status?.phase === "Succeeded") return undefined;
  const ip = status?.podIP ?? "";
  const address = addressOf(workspace);
  const container = status?.containerStatuses?.find(({ name }) => name === pulumiContainer);
  return {
    isDeleting: metadata.deletionTimestamp !== undefined,
    ...defined({
      overdue: overduePod(pod),
      referencesHash: metadata.annotations?.[referencesHashAnnotation],
    }),
    agent: {
      workspace: ref,
      uid: metadata.uid ?? "",
      restarts: container?.restartCount ?? 0,
      ip,
      port: address?.host === ip ? address.port : agentPort,
    },
  };
}
