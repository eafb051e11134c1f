/** The step that creates the claim with the caches of a WorkspaceClass. */
import { ApiError, applyOwned, asOwner, builtin, findOwnership } from "@pko/kube";

import { workspaceClasses } from "../../kinds.ts";
import type { Step } from "../steps.ts";
import {
  fieldManager,
  isRejection,
  performedBy,
  rejected,
  type WorkspaceContext,
  type WorkspacePerformed,
  type Writer,
} from "./owned.ts";

const present: WorkspacePerformed = { kind: "replan", facts: { hasCacheClaim: true } };

/** An existing claim stays as it is: most of its spec cannot be changed. */
export async function ensureCacheClaim(
  { client }: Writer,
  { applied: { name, uid }, claim }: Extract<Step, { kind: "ensureCacheClaim" }>,
  { signal }: WorkspaceContext,
): Promise<WorkspacePerformed> {
  const target = { client, owner: asOwner(workspaceClasses, { metadata: { name, uid } }), signal };
  const resource = builtin.persistentVolumeClaims;
  const ref = { name: claim.metadata.name, namespace: claim.metadata.namespace ?? "" };
  const { kind } = await findOwnership(target, { resource, ref });
  if (kind === "ours") return present;
  try {
    const write = await applyOwned(target, { resource, body: claim }, { fieldManager });
    return write.kind === "written" ? present : performedBy(write);
  } catch (error) {
    if (!(error instanceof ApiError) || !isRejection(error)) throw error;
    return rejected(error.explanation);
  }
}
