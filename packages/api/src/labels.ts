/** Labels on the objects that the operator creates, and on namespaces. */

const componentLabel = "pulumi.com/component";
export const stackNameLabel = "pulumi.com/stack-name";
export const autoComponentLabel = "auto.pulumi.com/component";
const workspaceNameLabel = "auto.pulumi.com/workspace-name";
export const updateNameLabel = "auto.pulumi.com/update-name";

/** On the Workspace and the Updates of a Stack. */
export const labelsOfStack = (stackName: string) => ({
  [componentLabel]: "stack",
  [stackNameLabel]: stackName,
});

/** On a Stack that previews a pull request: the name of the Stack that owns it. */
export const previewOfLabel = "pulumi.com/preview-of";

/** On the pod, StatefulSet, Service and Secrets of a Workspace. */
export const labelsOfWorkspace = (workspaceName: string) => ({
  [autoComponentLabel]: "workspace",
  [workspaceNameLabel]: workspaceName,
});

/** On the Secrets of an Update. */
export const labelsOfUpdate = (updateName: string) => ({
  [autoComponentLabel]: "update",
  [updateNameLabel]: updateName,
});

/** On a namespace: any value except "false" protects it from deletion, if the policy for that is installed. */
export const protectLabel = "pulumi.com/protect";
