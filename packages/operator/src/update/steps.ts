/** What the rules decide: the steps of an Update's reconcile. */
import type { UpdateRecord } from "@pko/api";
import type { Plan } from "@pko/kube";
import type { StartRequest } from "@pko/rpc";

import type { AgentPod } from "../agents/agents.ts";
import type { ResultSecrets } from "./desired/result-secrets.ts";
import type { Outcome } from "./outcome.ts";

/**
 * The `confirm…` steps read from the API server what the stores claim, because a store may be a minute old
 * (docs/adr/0010-confirm-irreversible-steps.md). If the claim is not confirmed, the view is stale.
 */
export type Step =
  /** Takes a slot, or joins those who wait for one. `starts`: the operation starts in this pass, with the slot. */
  | { readonly kind: "claimSlot"; readonly starts: boolean }
  /** Nothing can start in the workspace for now: others get its slot. */
  | { readonly kind: "giveUpSlot" }
  /** The Workspace is ready and the pod belongs to it: a run must not start in the wrong pod. */
  | { readonly kind: "confirmReady" }
  /** The recorded pod does not exist: a run that continues must not be reported as lost, because it would be repeated. */
  | { readonly kind: "confirmPodDeleted" }
  /** The prepared Workspace does not have the stack. */
  | { readonly kind: "confirmStackUnknown" }
  /** What the approval of the plan is based on: neither a start nor a refusal may follow from an outdated store. */
  | { readonly kind: "confirmApproval" }
  /** Only while it is unused. */
  | { readonly kind: "useApproval"; readonly approval: ApprovalVersion }
  /** Makes the Approval that this Update has used usable again: the Update ends, and its operation never started. */
  | { readonly kind: "releaseApproval" }
  /** Reads the plan that the Update applies from the Secrets of the Update that made it. */
  | { readonly kind: "readPlan"; readonly plan: PlanSource }
  | { readonly kind: "addFinalizer" }
  | { readonly kind: "removeFinalizer" }
  /** Starts the run, or attaches to it if the agent has started it before. */
  | { readonly kind: "followRun"; readonly pod: AgentPod; readonly request: StartRequest }
  /** Attaches to the run if the agent has started it before; never starts it. */
  | { readonly kind: "attachRun"; readonly pod: AgentPod; readonly runId: string }
  | { readonly kind: "cancelRun"; readonly pod: AgentPod; readonly runId: string }
  /** Sends no more requests about the run to an agent. */
  | { readonly kind: "forgetRun" }
  /** Before the status is written, so that a complete Update has all its Secrets. */
  | { readonly kind: "storeResult"; readonly secrets: ResultSecrets }
  /** Also before the status, because nothing is left to do for an Update that is complete. */
  | { readonly kind: "storeRecord"; readonly record: UpdateRecord }
  | { readonly kind: "deleteExpired" };

export interface ApprovalVersion {
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

export interface PlanSource {
  readonly updateName: string;
  readonly updateUid: string;
  readonly secretNames: readonly string[];
}

export type UpdatePlan = Plan<Step, Outcome>;
