/** The Update that a Stack creates. Pure. */
import {
  labelsOfStack,
  stackFinalizer,
  type NormalStack,
  type Stack,
  type Update,
  type UpdateSpec,
  type Workspace,
} from "@pko/api";

import { updates } from "../../kinds.ts";
import { ownerReference } from "../../shared/owner-reference.ts";
import {
  serializeTrigger,
  triggerAnnotation,
  updateNameFor,
  type Trigger,
  type TriggerReason,
} from "../history/trigger.ts";
import { purpose } from "../messages.ts";

export interface UpdateRequest {
  readonly stack: Stack;
  readonly spec: NormalStack;
  readonly workspace: Workspace;
  readonly trigger: Trigger;
  readonly reason: TriggerReason;
}

/** A foreground deletion of the Stack must not delete the Update, and with it the Workspace, before anything is destroyed. */
const blockOwnerDeletion = false;

export function updateObject({ stack, spec, workspace, trigger, reason }: UpdateRequest): Update {
  const { labels, annotations } = spec.update;
  return {
    apiVersion: updates.apiVersion,
    kind: updates.kind,
    metadata: {
      name: updateNameFor(stack, trigger),
      namespace: spec.namespace,
      labels: { ...labels, ...labelsOfStack(spec.name) },
      annotations: { ...annotations, [triggerAnnotation]: serializeTrigger(trigger) },
      ownerReferences: [
        ownerReference(workspace, { controller: true, blockOwnerDeletion }),
        ownerReference(stack, { controller: false, blockOwnerDeletion }),
      ],
      // Until its result is recorded: an Update that was deleted before would run again.
      finalizers: [stackFinalizer],
    },
    spec: {
      // Pulumi Cloud shows it in the stack's history.
      message: `Stack ${spec.namespace}/${spec.name}: ${purpose({ reason, trigger })}`,
      ...timeoutFields(spec),
      ...(trigger.type === "destroy" ? destroySpec(spec) : upSpec(spec)),
      workspaceName: workspace.metadata.name ?? "",
      stackName: spec.stackName,
      type: trigger.type,
      ttlAfterCompleted: `${Math.round(spec.update.ttlAfterCompletedMs / 1000)}s`,
    },
  };
}

/** Of every operation. The template may change them. */
function timeoutFields({ timeouts: { totalSeconds, silenceSeconds } }: NormalStack): UpdateSpec {
  return {
    ...(totalSeconds !== undefined && { timeoutSeconds: totalSeconds }),
    ...(silenceSeconds !== undefined && { silenceTimeoutSeconds: silenceSeconds }),
  };
}

function upSpec(spec: NormalStack): UpdateSpec {
  return {
    ...(spec.refresh && { refresh: true }),
    ...(spec.expectNoRefreshChanges && { expectNoRefreshChanges: true }),
    ...(spec.targets.length > 0 && { target: [...spec.targets] }),
    ...(spec.targetDependents && { targetDependents: true }),
    ...spec.update.spec,
  };
}

/**
 * As in the Go operator: a destroy ignores the Stack's targets, does not refresh, and keeps the empty Pulumi stack with its
 * history. The template applies to every Update and may change that.
 */
function destroySpec(spec: NormalStack): UpdateSpec {
  return { ...(spec.runProgramOnDestroy && { runProgram: true }), ...spec.update.spec };
}
