/** The request that starts an Update's run, built from its spec. Pure. */
import type { NormalUpdate } from "@pko/api";
import type { Operation, RunOrigin, SealedPlan, StartRequest } from "@pko/rpc";

import { stackName } from "../../shared/log-keys.ts";
import { runIdOf, type UpdateView } from "../view.ts";

/** The longest message that the agent accepts. */
const maxMessage = 4096;

export function startRequest(view: UpdateView, spec: NormalUpdate): StartRequest {
  const { lostRuns } = view;
  return {
    runId: runIdOf(view),
    stack: spec.stackName,
    operation: operationOf(view, spec),
    ...(lostRuns.length > 0 && { lostRuns: [...lostRuns] }),
    ...(Object.keys(spec.timeouts).length > 0 && { timeouts: spec.timeouts }),
    origin: originOf(view),
  };
}

function originOf({ update: { metadata }, traceparent }: UpdateView): RunOrigin {
  const stack = stackName(metadata);
  return {
    update: metadata.name ?? "",
    ...(stack !== undefined && { stack }),
    ...(traceparent !== undefined && { traceparent }),
  };
}

function operationOf(view: UpdateView, spec: NormalUpdate): Operation {
  const common = commonOptions(spec, view.logLevel);
  const savePlan = spec.savePlan ? { savePlan: true } : {};
  const previewOnly = spec.previewOnly ? { previewOnly: true } : {};
  const applyPlan = planToApply(view, spec);
  const refresh = spec.refresh ? { refresh: true } : {};
  const expectNoChanges = spec.expectNoChanges ? { expectNoChanges: true } : {};
  const replace = spec.replace.length > 0 ? { replace: [...spec.replace] } : {};
  const continueOnError = spec.continueOnError ? { continueOnError: true } : {};
  switch (spec.type) {
    case "preview":
      return { kind: "preview", ...common, ...refresh, ...replace, ...expectNoChanges, ...savePlan };
    case "up": {
      const expectNoRefreshChanges = spec.expectNoRefreshChanges ? { expectNoRefreshChanges: true } : {};
      const expectations = { ...expectNoChanges, ...expectNoRefreshChanges };
      return { kind: "up", ...common, ...refresh, ...replace, ...expectations, ...continueOnError, ...applyPlan };
    }
    case "refresh":
      return {
        kind: "refresh",
        ...common,
        ...expectNoChanges,
        ...(spec.clearPendingCreates && { clearPendingCreates: true }),
        ...(spec.previewOnly && { previewOnly: true }),
      };
    case "destroy": {
      const remove = spec.remove ? { remove: true } : {};
      return {
        kind: "destroy",
        ...common,
        ...refresh,
        ...continueOnError,
        ...remove,
        ...previewOnly,
        ...savePlan,
        ...applyPlan,
      };
    }
  }
}

/** The agent compares the digest with the content: whoever can write Secrets must not be able to exchange the plan. */
function planToApply({ planContent }: UpdateView, { applyPlan }: NormalUpdate): { applyPlan?: SealedPlan } {
  if (!applyPlan || planContent?.kind !== "read") return {};
  return { applyPlan: { digest: applyPlan.digest, content: planContent.content } };
}

function commonOptions(spec: NormalUpdate, logLevel: number | undefined) {
  return {
    ...(spec.message !== "" && { message: spec.message.slice(0, maxMessage) }),
    ...(spec.parallel !== undefined && { parallel: spec.parallel }),
    ...(spec.targets.length > 0 && { targets: [...spec.targets] }),
    ...(spec.targetDependents && { targetDependents: true }),
    ...(spec.runProgram && { runProgram: true }),
    ...(logLevel !== undefined && logLevel >= 0 && { logLevel: Math.min(logLevel, 11) }),
  };
}
