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

export interface ControlOptions {
  /** What the WorkspaceClass of the namespace requires; Never by default. */
  readonly leastApproval?: ApprovalRequirement;
}

export function stackControl(spec: StackSpec, findings: Findings, { leastApproval }: ControlOptions = {}): Control {
  const { driftDetection: drift, maxFailures } = spec;
  const approval = stackApproval(spec, leastApproval);
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

export type ApprovalRequirement = "Never" | "OnDestructiveChanges" | "Always";

/** From the weakest to the strictest. */
const requirements: readonly ApprovalRequirement[] = ["Never", "OnDestructiveChanges", "Always"];

const stricter = (a: ApprovalRequirement, b: ApprovalRequirement): ApprovalRequirement =>
  requirements.indexOf(a) > requirements.indexOf(b) ? a : b;

/** Known even if the rest of the spec is invalid. The stricter of what the Stack requires, and `least`. */
export function stackApproval(
  { approval = {} }: Pick<StackSpec, "approval">,
  least: ApprovalRequirement = "Never",
): Control["approval"] {
  const { required: own = "Never", expiresAfterSeconds = defaultExpirySeconds } = approval;
  const required = stricter(own, least);
  return required === "Never" ? undefined : { required, expiresAfterMs: boundedMs(expiresAfterSeconds) };
}

/** At most ten years, because much later dates cannot be represented. */
export const boundedMs = (seconds: number): number => Math.min(seconds, 10 * 365 * 86_400) * 1000;
