/** The Update that a Stack creates. Pure. */
import {
  labelsOfStack,
  stackFinalizer,
  triggerReasonAnnotation,
  type NormalStack,
  type Stack,
  type Update,
  type UpdateSpec,
  type UpdateType,
  type Workspace,
} from "@pko/api";

import { updates } from "../../kinds.ts";
import { ownerReference } from "../../shared/objects/owner-reference.ts";
import { correctsDrift } from "../history/drift.ts";
import {
  serializeTrigger,
  triggerAnnotation,
  unusedNameFor,
  type Stage,
  type Trigger,
  type TriggerReason,
} from "../history/trigger.ts";
import { cause, purpose } from "../messages.ts";

export interface UpdateRequest {
  readonly stack: Stack;
  readonly spec: NormalStack;
  readonly workspace: Workspace;
  readonly trigger: Trigger;
  readonly reason: TriggerReason;
  readonly stage?: Stage;
  /** The names of its Updates whose result is recorded. */
  readonly recorded?: readonly string[];
}

/** A foreground deletion of the Stack must not delete the Update, and with it the Workspace, before anything is destroyed. */
const blockOwnerDeletion = false;

export function updateObject({ stack, spec, workspace, trigger, reason, ...request }: UpdateRequest): Update {
  const { stage = { kind: "direct" }, recorded = [] } = request;
  const { labels, annotations } = spec.update;
  return {
    apiVersion: updates.apiVersion,
    kind: updates.kind,
    metadata: {
      name: unusedNameFor(stack, trigger, { stage, recorded }),
      namespace: spec.namespace,
      labels: { ...labels, ...labelsOfStack(spec.name) },
      annotations: {
        ...annotations,
        [triggerAnnotation]: serializeTrigger(trigger),
        [triggerReasonAnnotation]: cause({ reason, trigger }),
      },
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
      ...operationSpec(stack, spec, trigger.type),
      workspaceName: workspace.metadata.name ?? "",
      stackName: spec.stackName,
      type: trigger.type,
      ...stageSpec(trigger, stage),
      ttlAfterCompleted: `${Math.round(retentionMs(spec, trigger, stage) / 1000)}s`,
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

/** Of drift checks, which are many, the last two are kept. An Update takes its plan with it, so it stays until that expires. */
function retentionMs({ update, driftDetection, approval }: NormalStack, { type }: Trigger, stage: Stage): number {
  const { ttlAfterCompletedMs } = update;
  if (stage.kind === "plan") return Math.max(ttlAfterCompletedMs, approval?.expiresAfterMs ?? 0);
  if (type !== "refresh" || !driftDetection) return ttlAfterCompletedMs;
  return Math.min(ttlAfterCompletedMs, 2 * driftDetection.everyMs);
}

/** A plan is made with the same options with which it is applied. */
function stageSpec({ type }: Trigger, stage: Stage): UpdateSpec {
  switch (stage.kind) {
    case "direct":
      return {};
    case "plan":
      return { ...(type === "destroy" ? { previewOnly: true } : { type: "preview" }), savePlan: true };
    case "apply": {
      const { updateName, updateUid, digest, approvalName } = stage.request;
      return { applyPlan: { updateName, updateUid, digest, ...(approvalName !== undefined && { approvalName }) } };
    }
  }
}

export function operationSpec(stack: Stack, spec: NormalStack, type: UpdateType): UpdateSpec {
  switch (type) {
    case "destroy":
      return destroySpec(spec);
    case "refresh":
      return driftCheckSpec(spec);
    case "preview":
    case "up":
      return correctsDrift(stack, spec) ? correctionSpec(spec) : upSpec(spec);
  }
}

/** The refresh finds the drift, and that is expected. */
function correctionSpec(spec: NormalStack): UpdateSpec {
  const { expectNoRefreshChanges: _, ...rest } = upSpec(spec);
  return { ...rest, refresh: true };
}

function upSpec(spec: NormalStack): UpdateSpec {
  return {
    ...(spec.refresh && { refresh: true }),
    ...(spec.expectNoRefreshChanges && { expectNoRefreshChanges: true }),
    ...targetSpec(spec),
    ...spec.update.spec,
  };
}

const targetSpec = (spec: NormalStack): UpdateSpec => ({
  ...(spec.targets.length > 0 && { target: [...spec.targets] }),
  ...(spec.targetDependents && { targetDependents: true }),
});

/** Compares what an update would refresh. Of the template, only what also applies to a comparison. */
function driftCheckSpec(spec: NormalStack): UpdateSpec {
  const { parallel, target, targetDependents, runProgram } = spec.update.spec;
  return {
    ...targetSpec(spec),
    ...(parallel !== undefined && { parallel }),
    ...(target && { target }),
    ...(targetDependents !== undefined && { targetDependents }),
    ...(runProgram !== undefined && { runProgram }),
    previewOnly: true,
  };
}

/**
 * As in the Go operator: a destroy ignores the Stack's targets, does not refresh, and keeps the empty Pulumi stack with its
 * history. The template applies to every Update and may change that.
 */
function destroySpec(spec: NormalStack): UpdateSpec {
  return { ...(spec.runProgramOnDestroy && { runProgram: true }), ...spec.update.spec };
}
