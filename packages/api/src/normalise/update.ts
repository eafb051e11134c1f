/** An Update in one form, for its controller. Pure; never throws, whatever it is given. */
import { Type, type Static } from "typebox";

import { durationWording, parseDuration } from "../shared/duration.ts";
import { UpdateSpec, updateTypes, type UpdateType } from "../update/spec.ts";
import { Findings, type Normalised } from "./findings.ts";
import { isArgument, isObjectName } from "./rules.ts";
import { NamedMetadata, shaped } from "./shape.ts";

export interface NormalUpdate {
  readonly name: string;
  readonly namespace: string;
  readonly workspaceName: string;
  readonly stackName: string;
  readonly type: UpdateType;
  /** Kept for ever when undefined. */
  readonly ttlAfterCompletedMs?: number;
  readonly message: string;
  /** As many as Pulumi likes when undefined. */
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
}

const UpdateShape = Type.Object({ metadata: NamedMetadata, spec: UpdateSpec });

export function normaliseUpdate(update: unknown): Normalised<NormalUpdate> {
  const findings = new Findings("update");
  const shape = shaped(UpdateShape, update, findings);
  return findings.outcome(shape && normalForm(shape, findings));
}

function normalForm({ metadata, spec }: Static<typeof UpdateShape>, findings: Findings): NormalUpdate | undefined {
  const { workspaceName = "", stackName = "" } = spec;
  if (!isObjectName(workspaceName)) {
    findings.problem("spec.workspaceName", { message: "is not the name of a Workspace", remedy: "name a Workspace" });
  }
  if (!isArgument(stackName)) {
    findings.problem("spec.stackName", { message: "is not the name of a Pulumi stack", remedy: "name a stack" });
  }
  const type = updateTypes.find((known) => known === spec.type);
  if (!type) {
    findings.problem("spec.type", { message: "is not an operation", remedy: `use ${updateTypes.join(", ")}` });
    return undefined;
  }
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? "",
    workspaceName,
    stackName,
    type,
    ...retentionOf(spec, findings),
    ...optionsOf(spec, findings),
  };
}

function retentionOf({ ttlAfterCompleted }: UpdateSpec, findings: Findings): { ttlAfterCompletedMs?: number } {
  if (ttlAfterCompleted === undefined) return {};
  const ms = parseDuration(ttlAfterCompleted);
  if (ms === undefined) findings.problem("spec.ttlAfterCompleted", durationWording);
  return { ttlAfterCompletedMs: Math.max(ms ?? 0, 0) };
}

function optionsOf(spec: UpdateSpec, findings: Findings) {
  const { parallel } = spec;
  if (parallel !== undefined && parallel < 0) {
    findings.problem("spec.parallel", { message: "must not be negative", remedy: "give 1 or more, or remove it" });
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
  };
}
