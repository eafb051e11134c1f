/** Names of generated objects. They are deterministic, so creating an object twice creates it once. */
import { createHash } from "node:crypto";

import { nameLimit } from "./stack/messages.ts";
import type { UpdateType } from "./update/spec.ts";

export * from "./workspace/names.ts";

/** The Secret with the outputs of a Stack's last update. */
export const stackOutputsSecretOf = (stackName: string): string => `${stackName}-outputs`;

/** The key of an output in a Secret. Pulumi allows names that are no valid keys; such an output gets a hash of its name. */
export function outputKeyOf(name: string): string {
  if (name.length <= 253 && /^[-._a-zA-Z0-9]+$/.test(name) && !name.startsWith("..") && name !== ".") return name;
  return `output-${createHash("sha256").update(name).digest("hex").slice(0, 16)}`;
}

export const outputsSecretNameOf = (updateName: string): string => `${updateName}-stack-outputs`;

/** The Secret with the whole output of an Update, if it is too long for the status. */
export const stdoutSecretNameOf = (updateName: string): string => `${updateName}-stdout`;

/** The Secrets with the plan that an Update keeps: one for each part. */
export const planSecretNameOf = (updateName: string, part: number): string => `${updateName}-plan-${part}`;

/** Why an update runs. Any two updates differ in at least one of these fields. */
export interface UpdateTrigger {
  readonly stackName: string;
  readonly stackUid: string;
  readonly type: UpdateType;
  readonly generation: number;
  readonly revision: string;
  readonly reconcileRequest: string;
  /** The number of the periodic resync. */
  readonly resyncSlot: number;
  /** The number of the attempt, after failures. */
  readonly attempt: number;
}

const hashLength = 12;

export function updateNameOf(trigger: UpdateTrigger): string {
  const { stackName, stackUid, type, generation, revision, reconcileRequest, resyncSlot, attempt } = trigger;
  const identity = JSON.stringify([stackUid, type, generation, revision, reconcileRequest, resyncSlot, attempt]);
  const hash = createHash("sha256").update(identity).digest("hex").slice(0, hashLength);
  // A Stack created for the Go operator may have a longer name; a label value has at most 63 characters.
  return `${stackName.slice(0, nameLimit)}-${hash}`;
}
