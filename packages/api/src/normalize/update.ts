/** Converts an Update to a normal form for its controller. Pure; never throws, for any input. */
import { Type, type Static } from "typebox";

import { durationMessage, parseDuration } from "../shared/duration.ts";
import { UpdateSpec, updateTypes, type UpdateType } from "../update/spec.ts";
import { Findings, type Normalized } from "./findings.ts";
import { timeoutsOf, type Timeouts } from "./timeouts.ts";
import { isArgument, isObjectName } from "./rules.ts";
import { NamedMetadata, checkShape } from "./shape.ts";

export interface NormalUpdate {
  readonly name: string;
  readonly namespace: string;
  readonly workspaceName: string;
  readonly stackName: string;
  readonly type: UpdateType;
  /** Never deleted automatically if undefined. */
  readonly ttlAfterCompletedMs?: number;
  readonly message: string;
  /** Undefined for Pulumi's default. */
  readonly parallel?: number;
  readonly refresh: boolean;
  readonly targets: readonly string[];
  readonly targetDependents: boolean;
  readonly replace: readonly string[];
  readonly expectNoChanges: boolean;
  readonly expectNoRefreshChanges: boolean;
  readonly continueOnError: boolean;
  readonly remove: boolean;
  readonly runProgram: boolean;
  /** Only for refresh and destroy: nothing is changed. */
  readonly previewOnly: boolean;
  readonly savePlan: boolean;
  /** Only for refresh: removes interrupted creates from the state. */
  readonly clearPendingCreates: boolean;
  readonly applyPlan?: NonNullable<UpdateSpec["applyPlan"]>;
  readonly timeouts: Timeouts;
}

const UpdateShape = Type.Object({ metadata: NamedMetadata, spec: UpdateSpec });

export function normalizeUpdate(update: unknown): Normalized<NormalUpdate> {
  const findings = new Findings("update");
  const shape = checkShape(UpdateShape, update, findings);
  return findings.outcome(shape && normalForm(shape, findings));
}

function normalForm({ metadata, spec }: Static<typeof UpdateShape>, findings: Findings): NormalUpdate | undefined {
  const { workspaceName = "", stackName = "" } = spec;
  if (!isObjectName(workspaceName)) {
    findings.problem("spec.workspaceName", {
      message: "is not a valid name of a Workspace",
      remedy: "set the name of a Workspace",
    });
  }
  if (!isArgument(stackName)) {
    findings.problem("spec.stackName", {
      message: "is not a valid name of a Pulumi stack",
      remedy: "set the name of a stack",
    });
  }
  const type = updateTypes.find((known) => known === spec.type);
  if (!type) {
    findings.problem("spec.type", { message: "is not a supported operation", remedy: `use ${updateTypes.join(", ")}` });
    return undefined;
  }
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? "",
    workspaceName,
    stackName,
    type,
    ...retention(spec, findings),
    ...operationOptions(spec, findings),
    ...planOptions(spec, type, findings),
    clearPendingCreates: clearsPendingCreates(spec, type, findings),
  };
}

function retention({ ttlAfterCompleted }: UpdateSpec, findings: Findings): { ttlAfterCompletedMs?: number } {
  if (ttlAfterCompleted === undefined) return {};
  const ms = parseDuration(ttlAfterCompleted);
  if (ms === undefined) findings.problem("spec.ttlAfterCompleted", durationMessage);
  return { ttlAfterCompletedMs: Math.max(ms ?? 0, 0) };
}

function operationOptions(spec: UpdateSpec, findings: Findings) {
  const { parallel } = spec;
  if (parallel !== undefined && parallel < 0) {
    findings.problem("spec.parallel", {
      message: "must not be negative",
      remedy: "set 1 or more, or remove this field",
    });
  }
  return {
    message: spec.message ?? "",
    ...(parallel !== undefined && parallel > 0 && { parallel }),
    refresh: spec.refresh ?? false,
    targets: spec.target ?? [],
    targetDependents: spec.targetDependents ?? false,
    replace: spec.replace ?? [],
    expectNoChanges: spec.expectNoChanges ?? false,
    expectNoRefreshChanges: spec.expectNoRefreshChanges ?? false,
    continueOnError: spec.continueOnError ?? false,
    remove: spec.remove ?? false,
    runProgram: spec.runProgram ?? false,
    timeouts: timeoutsOf(spec.timeoutSeconds, spec.silenceTimeoutSeconds),
  };
}

/** Only the refresh command of the CLI can do it. It edits the state first, which a preview must not. */
function clearsPendingCreates(spec: UpdateSpec, type: UpdateType, findings: Findings): boolean {
  const { clearPendingCreates = false, previewOnly = false } = spec;
  if (clearPendingCreates && (type !== "refresh" || previewOnly)) {
    const remedy = "use the type refresh without previewOnly, or remove this field";
    findings.problem("spec.clearPendingCreates", { message: "applies only to refresh", remedy });
  }
  return clearPendingCreates;
}

/** Which operations can be planned: an up is planned by a preview, a destroy by itself. */
function planOptions(
  { previewOnly = false, savePlan = false, applyPlan }: UpdateSpec,
  type: UpdateType,
  findings: Findings,
) {
  if (previewOnly && type !== "refresh" && type !== "destroy") {
    const remedy = "use the type preview, or remove this field";
    findings.problem("spec.previewOnly", { message: "applies only to refresh and destroy", remedy });
  }
  if (savePlan && type !== "preview" && !(type === "destroy" && previewOnly)) {
    const remedy = "use the type preview, or set previewOnly, or remove this field";
    findings.problem("spec.savePlan", { message: "applies only to preview, and to destroy with previewOnly", remedy });
  }
  if (applyPlan && ((type !== "up" && type !== "destroy") || previewOnly)) {
    const remedy = "use the type up or destroy without previewOnly, or remove this field";
    findings.problem("spec.applyPlan", { message: "applies only to up and destroy", remedy });
  }
  return { previewOnly, savePlan, ...(applyPlan && { applyPlan }) };
}
