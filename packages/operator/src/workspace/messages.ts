/**
 * The texts of a Workspace's conditions and events. What is wrong with a template or a pod is described where it is found:
 * pod/ and prepare/.
 */
import type { PreparePhase } from "@pko/rpc";

import type { WaitingForSlot } from "../shared/channels/slots.ts";
import { limitText, queueText } from "../shared/slot-text.ts";

export { classConflict } from "../shared/class-messages.ts";

export const deleting = "the workspace is being deleted";
export const prepared = "the workspace is prepared";
export const preparedWithWarning = (warning: string): string => `the workspace is prepared, but ${warning}`;
export const idle = "the workspace is idle and scaled to zero; an Update or a change of its spec wakes it";

export const phases: Readonly<Record<PreparePhase, string>> = {
  source: "the program is being fetched",
  install: "the program's dependencies are being installed",
  stack: "the stack is being selected",
  config: "the stack is being configured",
};

export const waitingForSlot = (slot: WaitingForSlot): string =>
  `the pod is created when the turn of the workspace comes, because ${limitText(slot)}: ${queueText(slot)}`;
export const podNeverStarted = (explanation: string): string =>
  `the pod has not started for five minutes: ${explanation}; it is deleted, because others wait for its slot`;
export const triedAgain = (explanation: string, slot: WaitingForSlot): string =>
  `the pod has not started for five minutes: ${explanation}; it is created again when the turn of the workspace comes, because ${limitText(slot)}: ${queueText(slot)}`;
export const podBeingCreated = "the pod is being created";
export const podBeingReplaced = "the pod is being replaced";
export const podAboutToBeReplaced = "the pod is about to be replaced";
export const templateChanged = "the pod is being replaced: its template, or what it reads, has changed";
export const brokenPodReplaced = (explanation: string): string => `the pod is being replaced: ${explanation}`;
export const podRejected = (reason: string): string => `admission rejected the pod: ${reason}`;
export const formerStatefulSet = "the former StatefulSet is being deleted";
export const idlePreempted = (explanation: string): string =>
  `${explanation}; idle workspaces are being scaled to zero to free capacity`;

/** Completes the message about a node that may be lost. */
export const noOtherPod = "the workspace cannot have another pod until this one is removed";

export const firstMissing = (first: string, others: number): string =>
  others > 0 ? `${first} (and ${others} more)` : first;

export const waitsForUpdate = (update: string, { isObserved }: { readonly isObserved: boolean }): string =>
  `${isObserved ? "the workspace" : "the new spec"} waits for the update ${update} to finish`;
export const waitsForRun = (detail: string): string => `the workspace waits for a run to finish: ${detail}`;

export const agentUnreachable = (detail: string): string => `the pod's agent does not respond: ${detail}`;

export const certificateRejected = (secret: string, explanation: string): string =>
  `the Secret ${secret} with the agent's certificate could not be written: ${explanation}; this is retried every minute`;

interface Excess {
  readonly className: string;
  /** Such as memory. */
  readonly resource: string;
  readonly max: string;
}

interface InitExcess extends Excess {
  readonly container: string;
  readonly own: string;
  /** Whether some are started before it. */
  readonly sidecars: boolean;
}

export const limitMissing = ({
  className,
  resource,
  max,
  container,
}: Excess & { readonly container: string }): string =>
  `spec.podTemplate: the container ${container} has no limit for ${resource}, and the WorkspaceClass ${className} allows the pod ${max} in total; set resources.limits.${resource} of this container`;
export const initLimitExceeded = ({ container, own, sidecars, ...excess }: InitExcess): string =>
  `spec.podTemplate: the init container ${container} has a limit or request for ${excess.resource} of ${own}${sidecars ? " together with the sidecars before it" : ""}, and the WorkspaceClass ${excess.className} allows ${excess.max}; lower its resources${sidecars ? " or theirs" : ""}`;
export const ownLimitExceeded = ({ className, resource, max, own }: Excess & { readonly own: string }): string =>
  `spec.podTemplate: the pod has a limit or request for ${resource} of ${own}, and the WorkspaceClass ${className} allows ${max}; lower it in podTemplate.spec.resources`;
export const podLimitExceeded = ({ className, resource, max, sum }: Excess & { readonly sum: string }): string =>
  `spec.resources: the containers of the pod have limits and requests for ${resource} of ${sum} in total, and the WorkspaceClass ${className} allows ${max}; lower them`;

export const namespaceUnknown = "the labels of the namespace are being read, to find its WorkspaceClass";

export const stateNotKept = (folder: string): string =>
  `the stack's state is in ${folder}, which no volume keeps: it is lost with the pod, so the workspace is never scaled to zero; mount a volume there, or use another backend`;
