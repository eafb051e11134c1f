/** The request that starts an Update's run, built from its spec. Pure. */
import type { NormalUpdate } from "@pko/api";
import type { Operation, StartRequest } from "@pko/rpc";

import { runIdOf, type UpdateView } from "../view.ts";

/** The longest message that the agent accepts. */
const maxMessage = 4096;

export function startRequest(view: UpdateView, spec: NormalUpdate): StartRequest {
  const { logLevel, lostRuns } = view;
  return {
    runId: runIdOf(view),
    stack: spec.stackName,
    operation: operationOf(spec, logLevel),
    ...(lostRuns.length > 0 && { lostRuns: [...lostRuns] }),
    ...(Object.keys(spec.timeouts).length > 0 && { timeouts: spec.timeouts }),
  };
}

function operationOf(spec: NormalUpdate, logLevel: number | undefined): Operation {
  const common = commonOptions(spec, logLevel);
  const refresh = spec.refresh ? { refresh: true } : {};
  const expectNoChanges = spec.expectNoChanges ? { expectNoChanges: true } : {};
  const replace = spec.replace.length > 0 ? { replace: [...spec.replace] } : {};
  const continueOnError = spec.continueOnError ? { continueOnError: true } : {};
  switch (spec.type) {
    case "preview":
      return { kind: "preview", ...common, ...refresh, ...replace, ...expectNoChanges };
    case "up": {
      const expectNoRefreshChanges = spec.expectNoRefreshChanges ? { expectNoRefreshChanges: true } : {};
      const expectations = { ...expectNoChanges, ...expectNoRefreshChanges };
      return { kind: "up", ...common, ...refresh, ...replace, ...expectations, ...continueOnError };
    }
    case "refresh":
      return {
        kind: "refresh",
        ...common,
        ...expectNoChanges,
        ...(spec.clearPendingCreates && { clearPendingCreates: true }),
        ...(spec.previewOnly && { previewOnly: true }),
      };
    case "destroy":
      return { kind: "destroy", ...common, ...refresh, ...continueOnError, ...(spec.remove && { remove: true }) };
  }
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
