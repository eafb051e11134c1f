/** The admission policies of the chart, as far as the operator depends on them. */
import { approvalKind, stackKind, type Approval, type Stack } from "@pko/api";

import type { Admission } from "./api/server.ts";
import { StatusError } from "./api/storage.ts";

export const admission: Admission = ({ user, kind, before, after }) => {
  if (kind.kind === approvalKind.kind && !before) {
    const { decidedBy } = (after as unknown as Approval).spec;
    if (decidedBy !== user) throw denied("spec.decidedBy must be the name of the user");
  }
  if (kind.kind === stackKind.kind && before && user !== "admin") {
    const required = (before as unknown as Stack).spec?.approval?.required;
    const wanted = (after as unknown as Stack).spec?.approval?.required;
    if (required !== undefined && wanted !== required) throw denied("only approvers may change approval.required");
  }
};

const denied = (message: string): StatusError =>
  new StatusError(
    422,
    "Invalid",
    `ValidatingAdmissionPolicy 'approvals' with binding 'approvals' denied request: ${message}`,
  );
