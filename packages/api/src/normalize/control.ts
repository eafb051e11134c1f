/** The fields by which people control a Stack, with their defaults. */
import type { StackSpec } from "../stack/spec.ts";
import type { UpdateWindow } from "../windows/window-at.ts";
import type { Findings } from "./findings.ts";
import { timeoutsOf, type Timeouts } from "./timeouts.ts";
import { normalWindows } from "./windows.ts";

export interface Control {
  readonly suspend: boolean;
  /** Undefined if no approval is ever required. */
  readonly approval?: { readonly required: "OnDestructiveChanges" | "Always"; readonly expiresAfterMs: number };
  readonly driftDetection?: { readonly everyMs: number; readonly action: "Report" | "Correct" };
  /** When updates may start; at any time if there is none. */
  readonly windows: readonly UpdateWindow[];
  readonly timeouts: Timeouts;
  /** Undefined if retries continue. */
  readonly maxFailures?: number;
  /** How many finished Updates are kept. */
  readonly history: { readonly succeeded: number; readonly failed: number };
  readonly protect: boolean;
}

/** How long a plan can be approved and applied. */
export const defaultExpirySeconds = 86_400;

/** For successful and for failed Updates. */
export const defaultHistoryLimit = 10;

export function stackControl(spec: StackSpec, findings: Findings): Control {
  const { driftDetection: drift, maxFailures } = spec;
  const approval = stackApproval(spec);
  return {
    suspend: spec.suspend ?? false,
    ...(approval && { approval }),
    ...(drift && {
      driftDetection: { everyMs: boundedMs(drift.intervalSeconds), action: drift.action ?? ("Report" as const) },
    }),
    windows: normalWindows(spec.updateWindows ?? [], findings),
    timeouts: timeoutsOf(spec.updateTimeoutSeconds, spec.silenceTimeoutSeconds),
    ...(maxFailures !== undefined && { maxFailures }),
    history: {
      succeeded: spec.successfulUpdatesHistoryLimit ?? defaultHistoryLimit,
      failed: spec.failedUpdatesHistoryLimit ?? defaultHistoryLimit,
    },
    protect: spec.protect ?? false,
  };
}

/** Known even if the rest of the spec is invalid. */
export function stackApproval({ approval = {} }: Pick<StackSpec, "approval">): Control["approval"] {
  const { required = "Never", expiresAfterSeconds = defaultExpirySeconds } = approval;
  return required === "Never" ? undefined : { required, expiresAfterMs: boundedMs(expiresAfterSeconds) };
}

/** At most ten years, because much later dates cannot be represented. */
export const boundedMs = (seconds: number): number => Math.min(seconds, 10 * 365 * 86_400) * 1000;
