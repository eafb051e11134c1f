/** What the user may do, by SelfSubjectAccessReview. Requested once for each action and object; again if there was no answer. */
import { signal, type Signal } from "@preact/signals";

import { ApiError, kubernetes, session } from "./api.ts";

export interface Permission {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly namespace: string;
  readonly name?: string;
}

export type Answer = "unknown" | "allowed" | "denied";

const answers = new Map<string, Signal<Answer>>();

export function mayI(permission: Permission): Signal<Answer> {
  const key = JSON.stringify([session.peek()?.user, permission]);
  const known = answers.get(key);
  if (known) return known;
  const answer = signal<Answer>("unknown");
  answers.set(key, answer);
  void ask(permission, key, answer);
  return answer;
}

async function ask(permission: Permission, key: string, answer: Signal<Answer>): Promise<void> {
  answer.value = await review(permission);
  // The next page that needs the answer requests it again.
  if (answer.value === "unknown") answers.delete(key);
}

async function review(permission: Permission): Promise<Answer> {
  try {
    const { status } = await kubernetes<{ status?: { allowed?: boolean } }>(
      "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      {
        method: "POST",
        body: {
          apiVersion: "authorization.k8s.io/v1",
          kind: "SelfSubjectAccessReview",
          spec: { resourceAttributes: permission },
        },
      },
    );
    return status?.allowed === true ? "allowed" : "denied";
  } catch (error) {
    // Without an answer, nothing is known about the permission.
    return error instanceof ApiError && error.status === 403 ? "denied" : "unknown";
  }
}

export const permissionText = ({ verb, group, resource, namespace }: Permission): string =>
  `${verb} ${resource}.${group} in namespace ${namespace}`;

export const stackPatch = (namespace: string, name: string): Permission => ({
  verb: "patch",
  group: "pulumi.com",
  resource: "stacks",
  namespace,
  name,
});

export const approvalCreation = (namespace: string): Permission => ({
  verb: "create",
  group: "auto.pulumi.com",
  resource: "approvals",
  namespace,
});
