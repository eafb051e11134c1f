/** The steps that a plan for a Workspace can consist of. perform/ carries them out. */
import type { NormalWorkspace } from "@pko/api";
import type { Key, Plan } from "@pko/kube";
import type { PrepareRequest } from "@pko/rpc";
import type { CertificateState } from "@pko/rpc/pki";

import type { AgentPod } from "../agents/agents.ts";
import type { GitHubApp } from "../sources/github-app.ts";
import type { AppliedClass } from "../shared/workspace-classes.ts";
import type { cacheClaim } from "./classes/caches.ts";
import type { Outcome } from "./outcome.ts";
import type { BuiltObjects } from "./pod/build-objects.ts";

export type CacheClaim = NonNullable<ReturnType<typeof cacheClaim>>;

export type Step =
  /** Reads the Secrets, the ConfigMaps and the Program that the spec refers to, and builds from them what should exist. */
  | { readonly kind: "readInputs"; readonly spec: NormalWorkspace }
  /** Reads the certificate of the agent, unless it is known, and checks that it is valid. */
  | { readonly kind: "assessCertificate" }
  /** Takes a slot, or joins those who wait for one. The one of the namespace with the lowest rank is next. */
  | { readonly kind: "claimSlot"; readonly rank: number }
  /** Reads every name that the objects need, so that nothing is created where one of them is taken. */
  | { readonly kind: "checkNames" }
  /** Creates the claim with the caches of the class, unless it exists. */
  | { readonly kind: "ensureCacheClaim"; readonly applied: AppliedClass; readonly claim: CacheClaim }
  /** Writes it to its Secret. The kubelet updates the pod's volume, and the agent loads it. */
  | { readonly kind: "issueCertificate"; readonly because: Exclude<CertificateState, "current"> }
  /** Checked by a dry run first. */
  | { readonly kind: "applyObjects"; readonly objects: BuiltObjects }
  /** Applies the StatefulSet alone; never creates it. */
  | { readonly kind: "restoreStatefulSet"; readonly uid: string; readonly objects: BuiltObjects }
  /**
   * `backedOffGeneration`: the generation of the Workspace whose preparation failed. `notStarted`: why its pod has not started, so
   * that no Update can be about to start in it.
   */
  | {
      readonly kind: "scaleToZero";
      readonly uid: string;
      readonly backedOffGeneration?: number;
      readonly notStarted?: string;
    }
  | { readonly kind: "deletePod"; readonly uid: string; readonly graceSeconds?: number }
  /** Shows why the StatefulSet's controller does not create the pod. */
  | { readonly kind: "dryRunPod" }
  /** Makes the StatefulSet's controller retry the creation of the pod immediately. `uid`: of the StatefulSet. */
  | { readonly kind: "retryPodCreation"; readonly uid: string }
  | { readonly kind: "requestAppToken"; readonly app: GitHubApp }
  /** `retry`: repeats a preparation that failed. */
  | { readonly kind: "prepare"; readonly pod: AgentPod; readonly request: PrepareRequest; readonly retry: boolean }
  | { readonly kind: "forgetPreparation" }
  /** Reconciles another Workspace, which may make room. */
  | { readonly kind: "reconcileOther"; readonly key: Key };

export type WorkspacePlan = Plan<Step, Outcome>;
