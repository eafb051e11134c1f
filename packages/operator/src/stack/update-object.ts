/** The Update that a Stack asks for. Pure. */
import {
  labelsOfStack,
  stackFinalizer,
  type NormalStack,
  type Stack,
  type Update,
  type UpdateSpec,
  type Workspace,
} from "@pko/api";

import { updates } from "../kinds.ts";
import { because, type Why } from "./due.ts";
import { ownerReference } from "../shared/owner-reference.ts";
import { nameOfUpdate, triggerAnnotation, triggerText, type Trigger } from "./trigger.ts";

export interface UpdateRequest {
  readonly stack: Stack;
  readonly spec: NormalStack;
  readonly workspace: Workspace;
  readonly trigger: Trigger;
  readonly why: Why;
}

/** A foreground deletion of the Stack must not delete the Update, and with it the Workspace, before anything is destroyed. */
const blockOwnerDeletion = false;

export function updateObject({ stack, spec, workspace, trigger, why }: UpdateRequest): Update {
  const { labels, annotations } = spec.update;
  return {
    apiVersion: updates.apiVersion,
    kind: updates.kind,
    metadata: {
      name: nameOfUpdate(stack, trigger),
      namespace: spec.namespace,
      labels: { ...labels, ...labelsOfStack(spec.name) },
      annotations: { ...annotations, [triggerAnnotation]: triggerText(trigger) },
      ownerReferences: [
        ownerReference(workspace, { controller: true, blockOwnerDeletion }),
        ownerReference(stack, { controller: false, blockOwnerDeletion }),
      ],
      // Until its end is noted: an Update that vanished unseen would be run again.
      finalizers: [stackFinalizer],
    },
    spec: {
      // What Pulumi Cloud shows in the stack's history.
      message: `Stack ${spec.namespace}/${spec.name}: ${because({ why, trigger })}`,
      ...(trigger.type === "destroy" ? destroySpec(spec) : upSpec(spec)),
      workspaceName: workspace.metadata.name ?? "",
      stackName: spec.stackName,
      type: trigger.type,
      ttlAfterCompleted: `${Math.round(spec.update.ttlAfterCompletedMs / 1000)}s`,
    },
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
 * As in the reference: all resources are destroyed, whatever the Stack's targets are, without a refresh, and the emptied
 * Pulumi stack stays with its history. The template applies to every Update and may ask for more.
 */
function destroySpec(spec: NormalStack): UpdateSpec {
  return { ...(spec.runProgramOnDestroy && { runProgram: true }), ...spec.update.spec };
}
