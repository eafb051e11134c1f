/** Names of generated objects: the same question always gets the same name, so creating twice is creating once. */
import { createHash } from "node:crypto";

import { nameLimit } from "./stack/wording.ts";
import type { UpdateType } from "./update/spec.ts";

export const workspaceNameOf = (stackName: string): string => stackName;

/** The StatefulSet of a Workspace, and the headless Service before it. */
export const statefulSetNameOf = (workspaceName: string): string => `${workspaceName}-workspace`;

export const outputsSecretNameOf = (updateName: string): string => `${updateName}-stack-outputs`;

/** The Secret that keeps what an Update printed, where status cannot hold it. */
export const stdoutSecretNameOf = (updateName: string): string => `${updateName}-stdout`;

/** Why an update runs. Two updates differ in at least one of these. */
export interface UpdateTrigger {
  readonly stackName: string;
  readonly stackUid: string;
  readonly type: UpdateType;
  readonly generation: number;
  readonly revision: string;
  readonly reconcileRequest: string;
  /** Which of the periodic resyncs it is. */
  readonly resyncSlot: number;
  /** Which try it is, after failures. */
  readonly attempt: number;
}

const hashLength = 12;

export function updateNameOf(trigger: UpdateTrigger): string {
  const { stackName, stackUid, type, generation, revision, reconcileRequest, resyncSlot, attempt } = trigger;
  const identity = JSON.stringify([stackUid, type, generation, revision, reconcileRequest, resyncSlot, attempt]);
  const hash = createHash("sha256").update(identity).digest("hex").slice(0, hashLength);
  // A Stack of the reference may have a longer name; labels hold 63 characters.
  return `${stackName.slice(0, nameLimit)}-${hash}`;
}
