/** An Update's spec in the agent's words. */
import type { NormalUpdate } from "@pko/api";
import { assertNever, type Operation } from "@pko/rpc";

/** The most that the agent takes. */
const maxMessage = 4096;

export function operationOf(spec: NormalUpdate, logLevel?: number): Operation {
  const common = commonOf(spec, logLevel);
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
      return { kind: "refresh", ...common, ...expectNoChanges };
    case "destroy":
      return { kind: "destroy", ...common, ...refresh, ...continueOnError, ...(spec.remove && { remove: true }) };
    default:
      return assertNever(spec.type);
  }
}

function commonOf(spec: NormalUpdate, logLevel: number | undefined) {
  return {
    ...(spec.message !== "" && { message: spec.message.slice(0, maxMessage) }),
    ...(spec.parallel !== undefined && { parallel: spec.parallel }),
    ...(spec.targets.length > 0 && { targets: [...spec.targets] }),
    ...(spec.targetDependents && { targetDependents: true }),
    ...(spec.runProgram && { runProgram: true }),
    ...(logLevel !== undefined && logLevel >= 0 && { logLevel: Math.min(logLevel, 11) }),
  };
}
