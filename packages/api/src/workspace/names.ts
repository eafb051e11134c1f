/** Names of a Workspace and of its objects. */

export const workspaceNameOf = (stackName: string): string => stackName;

/** The Stack whose Workspace has this name, if there is one. */
export const stackNameOf = (workspaceName: string): string => workspaceName;

/** The StatefulSet of a Workspace, and its headless Service. */
export const statefulSetNameOf = (workspaceName: string): string => `${workspaceName}-workspace`;

/** The pod of a Workspace. */
export const podNameOf = (workspaceName: string): string => `${statefulSetNameOf(workspaceName)}-0`;
