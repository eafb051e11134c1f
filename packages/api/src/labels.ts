/** Labels on the objects that the operator makes. */
import type { Stack, Update, Workspace } from "./kinds.ts";

export const componentLabel = "pulumi.com/component";
export const stackNameLabel = "pulumi.com/stack-name";
export const autoComponentLabel = "auto.pulumi.com/component";
export const workspaceNameLabel = "auto.pulumi.com/workspace-name";
export const updateNameLabel = "auto.pulumi.com/update-name";

type Named<T extends { metadata: object }> = { readonly metadata: Pick<T["metadata"], keyof T["metadata"] & "name"> };

/** On the Workspace and the Updates of a Stack. */
export const labelsOfStack = (stack: Named<Stack>): Record<string, string> => ({
  [componentLabel]: "stack",
  [stackNameLabel]: stack.metadata.name ?? "",
});

/** On the pod, StatefulSet, Service and Secrets of a Workspace. */
export const labelsOfWorkspace = (workspace: Named<Workspace>): Record<string, string> => ({
  [autoComponentLabel]: "workspace",
  [workspaceNameLabel]: workspace.metadata.name ?? "",
});

/** On the Secrets of an Update. */
export const labelsOfUpdate = (update: Named<Update>): Record<string, string> => ({
  [autoComponentLabel]: "update",
  [updateNameLabel]: update.metadata.name ?? "",
});
