/** What the steps share: whose objects are written, what is confirmed before, and what a write resulted in. */
import { fieldManagers, statefulSetNameOf, type Program, type Update } from "@pko/api";
import {
  asOwner,
  builtin,
  missingPermission,
  stepDone,
  stepStale,
  type ApiError,
  type Client,
  type Key,
  type ApiObject,
  type ObjectRef,
  type OwnedTarget,
  type OwnedWrite,
  type Performed,
  type PerformContext,
  type Resource,
  type Store,
} from "@pko/kube";
import type { StatefulSet } from "kubernetes-types/apps/v1";

import type { OperatorCa, Preparations } from "../../agents/agents.ts";
import { workspaces } from "../../kinds.ts";
import type { Slots } from "../../shared/channels/slots.ts";
import type { GitHubAppTokens } from "../../sources/github-app.ts";
import { unfinishedNow } from "../observe/updates.ts";
import type { WorkspaceSettings } from "../settings.ts";
import type { WorkspaceView } from "../view.ts";

export interface Writer {
  /** Must be fenced: it writes nothing unless this process leads. */
  readonly client: Client;
}

export interface Performer extends Writer {
  readonly updates: Store<Update>;
  readonly programs: Store<Program>;
  readonly settings: WorkspaceSettings;
  readonly ca: Pick<OperatorCa, "assess" | "workspaceCertificate">;
  readonly preparations: Preparations;
  readonly githubApps?: GitHubAppTokens;
  readonly slots: Pick<Slots, "claim">;
  /** Whether a pod with this image could not start in this namespace, because it has no shell. */
  readonly hasNoShell: (namespace: string, image: string) => boolean;
  /** Reconciles another Workspace. */
  readonly enqueue: (key: Key) => void;
}

export type WorkspaceContext = PerformContext<WorkspaceView>;
export type WorkspacePerformed = Performed<WorkspaceView>;

export const fieldManager = fieldManagers.operator;

export const ownedBy = ({ client }: Writer, { view, signal }: WorkspaceContext): OwnedTarget => ({
  client,
  signal,
  owner: asOwner(workspaces, view.workspace),
});

export function statefulSetIn({ workspace }: WorkspaceView): {
  readonly resource: Resource<ApiObject<StatefulSet>>;
  readonly ref: ObjectRef;
} {
  const { name = "", namespace = "" } = workspace.metadata;
  return { resource: builtin.statefulSets, ref: { namespace, name: statefulSetNameOf(name) } };
}

/**
 * The garbage collector deletes what a deleted Workspace owns, possibly before the store shows the deletion: what is missing
 * then must not be created again.
 */
export async function workspaceExists({ client }: Writer, { view, signal }: WorkspaceContext): Promise<boolean> {
  const { name = "", namespace = "", uid } = view.workspace.metadata;
  const present = await client.find(workspaces, { namespace, name }, { signal });
  return present?.metadata.uid === uid && present?.metadata.deletionTimestamp === undefined;
}

type UpdateStore = Pick<Performer, "client" | "updates">;

/**
 * A store may be a minute old, and not show the Update that runs in the pod: before the pod is deleted or replaced, the
 * API server is queried (docs/adr/0010-confirm-irreversible-steps.md). The plan has taken the Updates in its view into account.
 */
export async function isPodFree(store: UpdateStore, { view, signal }: WorkspaceContext): Promise<boolean> {
  const updates = await unfinishedNow({ ...store, signal }, view.workspace);
  const known = new Set(view.updates.filter(({ phase }) => phase === "onPod").map(({ name }) => name));
  return updates?.every(({ name, phase }) => phase !== "onPod" || known.has(name)) ?? true;
}

/** Also no Update may exist that could start in the pod: one that waits for a slot cannot. */
export async function isUnused(store: UpdateStore, { view, signal }: WorkspaceContext): Promise<boolean> {
  const updates = await unfinishedNow({ ...store, signal }, view.workspace);
  const queued = new Set(view.updates.filter(({ phase }) => phase === "queued").map(({ name }) => name));
  return updates?.every(({ name, phase }) => phase !== "onPod" && queued.has(name)) ?? true;
}

/** The next pass observes what was deleted in the meantime. */
export function performedBy(write: OwnedWrite<unknown>): WorkspacePerformed {
  switch (write.kind) {
    case "changed":
      return stepStale;
    case "former":
    case "foreign":
      return { kind: "replan", facts: { occupied: [write] } };
    case "written":
    case "absent":
      return stepDone;
  }
}

export function wroteStatefulSet(write: OwnedWrite<ApiObject<StatefulSet>>): WorkspacePerformed {
  if (write.kind !== "written") return performedBy(write);
  const { uid = "", generation = 0 } = write.object.metadata;
  return { kind: "done", facts: { written: { uid, generation } } };
}

export const rejected = (rejection: string): WorkspacePerformed => ({ kind: "replan", facts: { rejection } });

/** The API server rejected the object itself, with a reason for the author of the template. */
export function isRejection(error: ApiError): boolean {
  return [400, 403, 422].includes(error.status) && !isOperatorDenied(error);
}

/** The operator lacks the permission for the request, so the error is not about the object. */
export function isOperatorDenied(error: ApiError): boolean {
  return error.status === 401 || missingPermission(error) !== undefined;
}
