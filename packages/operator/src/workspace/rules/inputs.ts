/** Rules that request what has to be read by name, before the rules that depend on it. */
import type { Step } from "../steps.ts";
import type { WorkspaceView } from "../view.ts";
import { decide, type Decision, type WorkspaceRule } from "./decision.ts";
import { objectsToApply } from "./objects.ts";

/** The rules before it need no inputs: while a workspace is idle, or an Update runs, nothing is read. */
export const inputsUnread: WorkspaceRule = ({ spec, inputs }) =>
  spec.ok && !inputs ? first({ kind: "readInputs", spec: spec.value }) : undefined;

/** A pod needs a valid certificate in any state, above all while an Update runs in it: the result is fetched with it. */
export const podCertificateInvalid: WorkspaceRule = (view) => (view.pod ? withCertificate(view) : undefined);

export const namesUnchecked: WorkspaceRule = (view) =>
  objectsToApply(view) && !view.occupied ? first({ kind: "checkNames" }) : undefined;

/** The pod that is about to be created mounts it. */
export const certificateMissing: WorkspaceRule = (view) => (view.pod ? undefined : withCertificate(view));

/** Undefined where the certificate is valid, or the API server has rejected a new one in this pass. */
function withCertificate({ certificate }: WorkspaceView): Decision | undefined {
  if (certificate === undefined) return first({ kind: "assessCertificate" });
  if (certificate === "current" || certificate === "rejected") return undefined;
  return first({ kind: "issueCertificate", because: certificate });
}

/** The plan is made again with what the step finds out. */
const first = (step: Step): Decision => decide({ kind: "unchanged" }, undefined, [step]);
