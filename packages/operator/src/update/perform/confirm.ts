/**
 * What the API server must confirm before a step that cannot be undone. The stores of two kinds may show different moments,
 * and a store may be a minute old where a watch has broken (docs/adr/0010-confirm-irreversible-steps.md).
 */
import { isDeepStrictEqual } from "node:util";
import { statefulSetNameOf, type Workspace } from "@pko/api";
import { asOwner, builtin, findOwnership, type Client, type ApiObject } from "@pko/kube";
import type { Pod } from "kubernetes-types/core/v1";

import { approvals, stacks, updates, workspaces } from "../../kinds.ts";
import { judgePod, podNameOf, podOwner } from "../../shared/pods/workspace-pod.ts";
import { approvalFacts, planRefOf, stackRefOf } from "../observe/approval.ts";
import { podFacts, workspaceFacts, workspaceRefOf } from "../observe/facts.ts";
import type { UpdateView } from "../view.ts";

interface ApiReader {
  readonly client: Client;
  readonly signal: AbortSignal;
}

/** An Update may be observed before the change of its Workspace that it is meant to run. */
export async function isReadyConfirmed(reader: ApiReader, view: UpdateView): Promise<boolean> {
  const ref = workspaceRefOf(view.update);
  const [workspace, pod] = await Promise.all([findWorkspace(reader, view), findPod(reader, view)]);
  const isSame =
    isDeepStrictEqual(workspaceFacts(workspace, view.update), view.workspace) &&
    isDeepStrictEqual(pod && podFacts(pod, ref, workspace), view.pod);
  return isSame && (await isPodOf(reader, workspace, pod));
}

export async function isPodDeletionConfirmed(reader: ApiReader, view: UpdateView): Promise<boolean> {
  const pod = await findPod(reader, view);
  return !pod || podFacts(pod, workspaceRefOf(view.update))?.agent.uid !== view.update.status?.podUid;
}

export async function isUnknownStackConfirmed(reader: ApiReader, view: UpdateView): Promise<boolean> {
  const workspace = await findWorkspace(reader, view);
  return isDeepStrictEqual(workspaceFacts(workspace, view.update), view.workspace);
}

async function findWorkspace({ client, signal }: ApiReader, { update }: UpdateView): Promise<Workspace | undefined> {
  return await client.find(workspaces, workspaceRefOf(update), { signal });
}

async function findPod({ client, signal }: ApiReader, { update }: UpdateView): Promise<ApiObject<Pod> | undefined> {
  const { namespace, name } = workspaceRefOf(update);
  return await client.find(builtin.pods, { namespace, name: podNameOf(name) }, { signal });
}

/** A rejection that the store does not show yet must count, and a refusal must not come from an outdated store. */
export async function isApprovalConfirmed({ client, signal }: ApiReader, view: UpdateView): Promise<boolean> {
  const { update } = view;
  const workspace = await findWorkspace({ client, signal }, view);
  const [stackRef, planRef] = [stackRefOf(workspace), planRefOf(update)];
  const [stack, plan, all] = await Promise.all([
    stackRef && client.find(stacks, stackRef, { signal }),
    planRef && client.find(updates, planRef, { signal }),
    planRef && client.list(approvals, { namespace: planRef.namespace, signal }),
  ]);
  const named = all?.items.filter(({ spec }) => spec.updateName === planRef?.name) ?? [];
  // A class that has changed in this moment counts from the next Update on.
  const facts = approvalFacts({ workspace, stack, plan, approvals: named, least: view.approval.least });
  return isDeepStrictEqual(facts, view.approval);
}

/** Whether the pod's controller is the StatefulSet whose controller is the Workspace. */
async function isPodOf(
  { client, signal }: ApiReader,
  workspace: Workspace | undefined,
  pod: ApiObject<Pod> | undefined,
): Promise<boolean> {
  if (!workspace || !pod) return false;
  const { name = "", namespace = "" } = workspace.metadata;
  const set = { resource: builtin.statefulSets, ref: { namespace, name: statefulSetNameOf(name) } };
  const found = await findOwnership({ client, owner: asOwner(workspaces, workspace), signal }, set);
  return found.kind === "ours" && judgePod(pod, podOwner(name, found.version.uid)).kind === "ours";
}
