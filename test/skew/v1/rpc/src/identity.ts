/** The names in certificates. A pod is dialled by its IP, so the name is what tells one workspace from another. */
import { createHash } from "node:crypto";

export interface WorkspaceRef {
  readonly namespace: string;
  readonly name: string;
}

const suffix = "workspace.auto.pulumi.com";
const maxNameLength = 253;

/** A namespace has no dots, so the last label before the suffix is always the namespace: no two workspaces meet. */
export function workspaceServerName(workspace: WorkspaceRef): string {
  const name = `${workspace.name}.${workspace.namespace}.${suffix}`;
  if (name.length <= maxNameLength && workspace.name.split(".").every((label) => label.length <= 63)) return name;
  const digest = createHash("sha256").update(workspace.name).digest("hex");
  // Two labels: one of 64 digits would be longer than a label may be.
  return `${digest.slice(0, 32)}.${digest.slice(32)}.${workspace.namespace}.${suffix}`;
}

export const operatorName = `operator.${suffix}`;
