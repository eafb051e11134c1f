/** The step that issues the agent's certificate. */
import { ApiError, applyOwned, builtin, stepStale } from "@pko/kube";

import * as messages from "../messages.ts";
import { certificateNameOf } from "../names.ts";
import { buildCertificateSecret } from "../pod/build-objects.ts";
import type { Step } from "../steps.ts";
import { isServing } from "../view.ts";
import {
  fieldManager,
  isRejection,
  ownedBy,
  performedBy,
  rejected,
  workspaceExists,
  type Performer,
  type WorkspaceContext,
  type WorkspacePerformed,
} from "./owned.ts";

type Issuer = Pick<Performer, "client" | "ca">;

export async function issueCertificate(
  issuer: Issuer,
  { because }: Extract<Step, { kind: "issueCertificate" }>,
  context: WorkspaceContext,
): Promise<WorkspacePerformed> {
  if (!(await workspaceExists(issuer, context))) return stepStale;
  const { view } = context;
  const { name = "", namespace = "" } = view.workspace.metadata;
  const certificate = await issuer.ca.workspaceCertificate({ namespace, name });
  const write = { resource: builtin.secrets, body: buildCertificateSecret(view.workspace, certificate) };
  try {
    const options = { fieldManager, ...(because === "missing" && { found: {} }) };
    const written = await applyOwned(ownedBy(issuer, context), write, options);
    if (written.kind !== "written") return performedBy(written);
    return { kind: "replan", facts: { certificate: "current", knownCertificate: certificate } };
  } catch (error) {
    if (!(error instanceof ApiError) || !isRejection(error)) throw error;
    // A workspace that serves continues with the certificate that it has; each pass retries.
    if (isServing(view)) return { kind: "replan", facts: { certificate: "rejected" } };
    return rejected(messages.certificateRejected(certificateNameOf(name), error.explanation));
  }
}
