/** Steps of an Update that applies a plan: it uses the Approval, and reads the plan. */
import { fieldManagers } from "@pko/api";
import {
  asOwner,
  builtin,
  classifyOwnership,
  stepDone,
  timestamp,
  type Client,
  type PerformContext,
  type Performed,
} from "@pko/kube";

import { approvals, updates } from "../../kinds.ts";
import * as messages from "../messages.ts";
import { planKey } from "../plan-key.ts";
import type { ApprovalVersion, PlanSource } from "../steps.ts";
import type { PlanContent, UpdateView } from "../view.ts";

interface Performer extends PerformContext<UpdateView> {
  readonly client: Client;
}

/** A conflict means that another Update was faster. */
export async function useApproval(
  { client, view, signal }: Performer,
  { name, uid, resourceVersion }: ApprovalVersion,
): Promise<Performed<UpdateView>> {
  const { metadata } = view.update;
  const { namespace = "" } = metadata;
  const usedBy = { updateName: metadata.name ?? "", updateUid: metadata.uid ?? "", time: timestamp(view.now) };
  const patch = { type: "merge", body: { metadata: { uid, resourceVersion }, status: { usedBy } } } as const;
  const { operator: fieldManager } = fieldManagers;
  await client.patch(approvals, { namespace, name }, { patch, subresource: "status", fieldManager, signal });
  return stepDone;
}

/** Read from the API server: the store may not show yet that the Approval was used. */
export async function releaseApproval({ client, view, signal }: Performer): Promise<Performed<UpdateView>> {
  const { namespace = "", uid } = view.update.metadata;
  const { items } = await client.list(approvals, { namespace, signal });
  for (const { metadata, status } of items) {
    if (status?.usedBy?.updateUid !== uid) continue;
    const { name = "", resourceVersion } = metadata;
    const body = { metadata: { uid: metadata.uid, resourceVersion }, status: { usedBy: null } };
    const patch = { type: "merge", body } as const;
    const { operator: fieldManager } = fieldManagers;
    await client.patch(approvals, { namespace, name }, { patch, subresource: "status", fieldManager, signal });
  }
  return stepDone;
}

/** Only Secrets of the Update that made the plan. Their content is not checked here: the agent compares it with the digest. */
export async function readPlan(
  { client, view, signal }: Performer,
  { updateName, updateUid, secretNames }: PlanSource,
): Promise<PlanContent> {
  const { namespace = "" } = view.update.metadata;
  const owner = asOwner(updates, { metadata: { name: updateName, uid: updateUid } });
  const parts: string[] = [];
  for (const name of secretNames) {
    const secret = await client.find(builtin.secrets, { namespace, name }, { signal });
    if (!secret) return { kind: "lost", why: messages.planSecretMissing(name) };
    if (classifyOwnership(secret, owner).kind !== "ours") {
      return { kind: "lost", why: messages.planSecretForeign(name, updateName) };
    }
    const part = secret.data?.[planKey];
    if (part === undefined) return { kind: "lost", why: messages.planSecretEmpty(name) };
    parts.push(Buffer.from(part, "base64").toString());
  }
  return { kind: "read", content: parts.join("") };
}
