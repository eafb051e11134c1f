/** For tests: views of an Update of the Stack web. */
import { triggerAnnotation, type Stack, type Update, type UpdateStatus } from "@pko/api";

import type { Access, ReportView, Subject } from "../view.ts";

export const now = Date.UTC(2030, 0, 1);
export const commit = "0123456789abcdef0123456789abcdef01234567";

export const stack: Stack = {
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "web", namespace: "apps", uid: "stack-uid" },
  spec: { stack: "acme/web/prod", projectRepo: "https://github.com/acme/web", branch: "main" },
};

export const settings = { type: "GitHub", secretRef: { name: "forge" } } as const;

export const subject: Subject = {
  stack,
  settings,
  target: { type: "GitHub", url: "https://api.github.com", repository: "acme/web" },
  commit,
  isVoid: false,
  isSuperseded: false,
  isCommentOutdated: false,
  isNamed: true,
  isSuspended: false,
  isAbandoned: false,
  forge: { isBusy: false, restUntil: 0 },
};

export const secret = { kind: "Secret", namespace: "apps", name: "forge", version: "1" } as const;
export const access: Access = { kind: "found", secret, credentials: { kind: "token", token: "t" } };

/** Of an Update that the operator has created for a Stack: its Workspace, and the Stack. */
export const ownersOf = (name: string, uid: string): [Owner, Owner] => [
  { apiVersion: "auto.pulumi.com/v1alpha1", kind: "Workspace", name, uid: `${uid}-workspace`, controller: true },
  { apiVersion: "pulumi.com/v1", kind: "Stack", name, uid, controller: false },
];

type Owner = NonNullable<Update["metadata"]["ownerReferences"]>[number];

export function updateOf(status: UpdateStatus = {}, changes: Partial<Update> = {}): Update {
  return {
    apiVersion: "auto.pulumi.com/v1alpha1",
    kind: "Update",
    metadata: {
      name: "web-1",
      namespace: "apps",
      uid: "update-uid",
      creationTimestamp: "2030-01-01T00:00:00Z",
      annotations: { [triggerAnnotation]: JSON.stringify({ type: "up", revision: commit }) },
      ownerReferences: ownersOf("web", "stack-uid"),
    },
    spec: { workspaceName: "web", stackName: "acme/web/prod", type: "up" },
    status,
    ...changes,
  };
}

const condition = (type: string, status: "True" | "False", reason = "Reason") => ({
  type,
  status,
  reason,
  message: "",
  lastTransitionTime: "2030-01-01T00:00:00Z",
});

export const running: UpdateStatus = { startTime: "2030-01-01T00:00:00Z" };
export const succeeded: UpdateStatus = {
  ...running,
  changes: { create: 2, replace: 1, delete: 3, same: 4 },
  conditions: [condition("Complete", "True"), condition("Failed", "False")],
};
/** Failed, for this reason. */
export const ended = (reason: string): UpdateStatus => ({
  ...running,
  conditions: [condition("Complete", "True", reason), condition("Failed", "True", reason)],
});
export const failed = ended("Reason");
export const withdrawn: UpdateStatus = {
  conditions: [condition("Complete", "True", "Canceled"), condition("Failed", "True", "Canceled")],
};

export const viewOf = (changes: Partial<ReportView> = {}): ReportView => ({
  now,
  update: updateOf(),
  subject,
  ...changes,
});
