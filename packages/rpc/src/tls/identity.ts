/** The names in certificates. The operator dials a pod by IP, so only the name identifies the workspace. */
import { createHash } from "node:crypto";

export interface WorkspaceRef {
  readonly namespace: string;
  readonly name: string;
}

const suffix = "workspace.auto.pulumi.com";
const maxNameLength = 253;

/** A namespace has no dots, so the last label before the suffix is the namespace and no two workspaces share a name. */
export function workspaceServerName(workspace: WorkspaceRef): string {
  const name = `${workspace.name}.${workspace.namespace}.${suffix}`;
  if (name.length <= maxNameLength && workspace.name.split(".").every((label) => label.length <= 63)) return name;
  const digest = createHash("sha256").update(workspace.name).digest("hex");
  // Two labels, because a label has at most 63 characters.
  return `${digest.slice(0, 32)}.${digest.slice(32)}.${workspace.namespace}.${suffix}`;
}

export const operatorName = `operator.${suffix}`;
