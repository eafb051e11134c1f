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
import { ownerOf } from "./owner.ts";
import { nameOfUpdate, triggerAnnotation, triggerText, type Trigger } from "./trigger.ts";

export interface UpdateRequest {
  readonly stack: Stack;
  readonly spec: NormalStack;
  readonly workspace: Workspace;
  readonly trigger: Trigger;
}

export function updateObject({ stack, spec, workspace, trigger }: UpdateRequest): Update {
  const { labels, annotations } = spec.update;
  return {
    apiVersion: updates.apiVersion,
    kind: updates.kind,
    metadata: {
      name: nameOfUpdate(stack, trigger),
      namespace: spec.namespace,
      labels: { ...labels, ...labelsOfStack(spec.name) },
      annotations: { ...annotations, [triggerAnnotation]: triggerText(trigger) },
      ownerReferences: [ownerOf(workspace, { controller: true }), ownerOf(stack, { controller: false })],
      // Until its end is noted: an Update that vanished unseen would be run again.
      finalizers: [stackFinalizer],
    },
    spec: {
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

/** All of it goes, whatever the targets of updates were. */
function destroySpec(spec: NormalStack): UpdateSpec {
  const { parallel, message, continueOnError } = spec.update.spec;
  return {
    ...(spec.refresh && { refresh: true }),
    ...(spec.runProgramOnDestroy && { runProgram: true }),
    ...(parallel !== undefined && { parallel }),
    ...(message !== undefined && { message }),
    ...(continueOnError !== undefined && { continueOnError }),
    remove: true,
  };
}
