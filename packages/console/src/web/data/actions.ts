/** What users can request. Each is one write with the user's own permissions. */
import {
  approvalKind,
  cancellationRequestAnnotation,
  driftRequestAnnotation,
  reconcileRequestAnnotation,
  type Approval,
  type ApprovalRequest,
} from "@pko/api/browser";

import { kubernetes, session } from "./api.ts";

interface Named {
  readonly namespace: string;
  readonly name: string;
}

const part = encodeURIComponent;

async function patchStack({ namespace, name }: Named, body: object): Promise<void> {
  await kubernetes(`/apis/pulumi.com/v1/namespaces/${part(namespace)}/stacks/${part(name)}`, {
    method: "PATCH",
    body,
    contentType: "application/merge-patch+json",
  });
}

const annotate = async (stack: Named, annotations: Record<string, string>): Promise<void> =>
  await patchStack(stack, { metadata: { annotations } });

/** A new value for each request: the time, and a random part. */
const requestValue = (): string => {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1));
  return `${new Date().toISOString()} ${random.toString(16).padStart(8, "0")}`;
};

export const reconcile = async (stack: Named): Promise<void> =>
  await annotate(stack, { [reconcileRequestAnnotation]: requestValue() });

export const checkDrift = async (stack: Named): Promise<void> =>
  await annotate(stack, { [driftRequestAnnotation]: requestValue() });

export const cancel = async (stack: Named, update: string): Promise<void> =>
  await annotate(stack, { [cancellationRequestAnnotation]: update });

export const suspend = async (stack: Named, isSuspended: boolean): Promise<void> =>
  await patchStack(stack, { spec: { suspend: isSuspended } });

export interface Decision {
  readonly namespace: string;
  readonly decision: Approval["spec"]["decision"];
  readonly reason: string;
}

/** Exactly the plan that the page shows: the operator ignores a decision about another digest. */
export async function decide(request: ApprovalRequest, { namespace, decision, reason }: Decision): Promise<void> {
  const { updateName, updateUid, digest } = request;
  const { apiVersion, kind } = approvalKind;
  const approval: Approval = {
    apiVersion,
    kind,
    metadata: { generateName: `${updateName}-`, namespace },
    spec: {
      updateName,
      updateUid,
      digest,
      decision,
      decidedBy: session.peek()?.user ?? "",
      ...(reason !== "" && { reason }),
    },
  };
  await kubernetes(`/apis/auto.pulumi.com/v1alpha1/namespaces/${part(namespace)}/approvals`, {
    method: "POST",
    body: approval,
  });
}
