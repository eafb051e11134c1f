/** What the rules decide: the steps of a Stack's reconcile. */
import type { NormalStack, SkippedCommit, Update, Workspace } from "@pko/api";
import type { Plan } from "@pko/kube";

import type { Turn } from "../shared/channels/slot-line.ts";
import type { DriftRecord } from "./history/drift.ts";
import type { Result } from "./history/result.ts";
import type { RecordedPlan } from "./history/approval.ts";
import type { Stage, Trigger, TriggerReason } from "./history/trigger.ts";
import type { Outcome } from "./outcome.ts";
import type { StackView, UpdateFacts } from "./view.ts";

export type Step =
  | { readonly kind: "addFinalizer" }
  | {
      readonly kind: "removeFinalizer";
      /** Only while no Update exists that may have changed a resource. */
      readonly nothingDeployed: boolean;
    }
  | { readonly kind: "removeOrphanFinalizers"; readonly updates: readonly Update[] }
  | { readonly kind: "removeUpdateFinalizers"; readonly updates: readonly UpdateFacts[] }
  /** Writes the outputs; the result itself goes into the status. */
  | { readonly kind: "recordResult"; readonly result: Result }
  /** The result of a drift check goes into the status. */
  | { readonly kind: "recordDrift"; readonly record: DriftRecord }
  /** Only in the status: a new plan, or that the one in it is superseded. */
  | { readonly kind: "recordPlan"; readonly plan: RecordedPlan }
  /** Only in the status: nothing runs for this commit. */
  | { readonly kind: "recordSkippedCommit"; readonly skipped: SkippedCommit }
  /** Those of the last update, which could not be written when its result was recorded. */
  | { readonly kind: "writeOutputs"; readonly updateName: string }
  | { readonly kind: "requestPrerequisites"; readonly requests: readonly PrerequisiteRequest[] }
  /** Reads the Secrets and ConfigMaps that the spec refers to: something is about to run. */
  | { readonly kind: "checkInputs"; readonly spec: NormalStack }
  /** Takes a slot, or joins those who wait for one. `turn`: what is known of an earlier wait. */
  | { readonly kind: "claimSlot"; readonly turn: Partial<Turn> }
  | { readonly kind: "applyWorkspace"; readonly workspace: Workspace }
  | {
      readonly kind: "createUpdate";
      readonly update: Update;
      readonly trigger: Trigger;
      readonly reason: TriggerReason;
      /** Of an update that may need an approval. */
      readonly stage?: Stage;
      /** As observed: the step fails if it has changed since. */
      readonly workspace: Workspace;
    }
  | {
      readonly kind: "withdrawUpdate";
      readonly name: string;
      readonly uid: string;
      /** Only in this version, if set. */
      readonly resourceVersion?: string;
    }
  /** Finished Updates, each only in the version that was observed. */
  | { readonly kind: "deleteUpdates"; readonly updates: readonly UpdateFacts[] }
  | { readonly kind: "deleteWorkspace"; readonly uid: string };

export interface PrerequisiteRequest {
  readonly name: string;
  readonly uid: string;
  /** The value of its reconcile request. */
  readonly request: string;
}

export type StackPlan = Plan<Step, Outcome>;

/** Undefined where the rule does not apply. */
export type StackRule = (view: StackView) => StackPlan | undefined;

export const unchanged = { kind: "unchanged" } as const satisfies Outcome;

/** A plan without steps. */
export function wait(outcome: Outcome, requeueAt?: number): StackPlan {
  return { steps: [], outcome, ...(requeueAt !== undefined && { requeueAt }) };
}
