/** The Stack's Workspace. */

export const workspaceName = (name: string): string => `Workspace ${name}`;
export const deletionOfWorkspace = (name: string): string => `the deletion of ${workspaceName(name)}`;

export const workspaceDeleting = (name: string): string =>
  `${workspaceName(name)} is being deleted; a new one will be created.`;

export const workspacePreparing = (name: string, what: string, progress?: string): string =>
  `${workspaceName(name)} is being prepared for ${what}${progress === undefined ? "." : `: ${progress}`}`;

export const workspaceFailed = (name: string, message: string): string =>
  `${workspaceName(name)} cannot be prepared: ${message}`;

export const workspaceNotObserved = "its spec has not been observed yet.";
export const workspaceNotReady = "it is not ready yet.";

export const workspaceReclaimed = "The Workspace is deleted, because workspaceReclaimPolicy is Delete.";
