/** The keys that identify an object in the log, besides the namespace and name that the runtime adds. */
import { stackKind, stackNameLabel } from "@pko/api";
import type { LogKeys, ObjectMeta } from "@pko/kube";

interface Identified {
  readonly metadata: ObjectMeta;
}

export const stackLogKeys = (name: string): LogKeys => ({ stack: name });

export const workspaceLogKeys = (name: string, workspace: Identified | undefined): LogKeys => ({
  stack: stackName(workspace?.metadata),
  workspace: name,
});

/** The lines of the agent about the same run have the same keys. */
export const updateLogKeys = (name: string, update: Identified | undefined): LogKeys => ({
  stack: stackName(update?.metadata),
  update: name,
  run: update?.metadata.uid,
});

export interface TraceIds {
  traceId(uid: string | undefined): string | undefined;
}

/** Only while traces are recorded. */
export const tracedLogKeys = (traces: TraceIds | undefined, update: Identified | undefined): LogKeys => ({
  traceID: traces?.traceId(update?.metadata.uid),
});

/** Undefined if no Stack created the object. */
export function stackName({ labels, ownerReferences = [] }: ObjectMeta = {}): string | undefined {
  return labels?.[stackNameLabel] ?? ownerReferences.find(({ kind }) => kind === stackKind.kind)?.name;
}
