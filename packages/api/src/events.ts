/** Event reasons and their types, by the kind that the events are about. */
export type EventType = "Normal" | "Warning";

export const stackEvents = {
  StackConfigInvalid: "Warning",
  StackInitializationFailure: "Warning",
  StackGitAuthenticationFailure: "Warning",
  StackUpdateFailure: "Warning",
  StackUpdateConflictDetected: "Warning",
  StackOutputRetrievalFailure: "Warning",
  StackNodeLost: "Warning",
  OwnershipConflict: "Warning",
  WorkspaceClassConflict: "Warning",
  StackUpdateTimedOut: "Warning",
  StackPolicyViolated: "Warning",
  StackRetriesExhausted: "Warning",
  StackDriftDetected: "Warning",
  StackDriftCheckFailed: "Warning",
  StackApprovalRejected: "Warning",
  StackApprovalPolicyMissing: "Warning",
  StackProtected: "Warning",
  StackDependentsIgnored: "Warning",
  StackPullRequestsFailed: "Warning",
  StackPullRequestOpened: "Normal",
  StackPullRequestMoved: "Normal",
  StackPullRequestClosed: "Normal",
  StackDriftResolved: "Normal",
  StackAwaitingApproval: "Normal",
  StackApproved: "Normal",
  StackApprovalExpired: "Normal",
  StackApprovalSuperseded: "Normal",
  StackSuspended: "Normal",
  StackResumed: "Normal",
  StackUpdateDetected: "Normal",
  StackNotFound: "Normal",
  StackCreated: "Normal",
  StackDestroyed: "Normal",
  WorkspaceDeleted: "Normal",
} as const satisfies Record<string, EventType>;
export type StackEvent = keyof typeof stackEvents;

/** On Workspaces and Updates. */
export const autoEvents = {
  ConnectionFailure: "Warning",
  InstallationFailure: "Warning",
  StackInitializationFailure: "Warning",
  OwnershipConflict: "Warning",
  WorkspaceClassConflict: "Warning",
  WorkspaceClassLimitExceeded: "Warning",
  UpdateFailed: "Warning",
  NodeLost: "Warning",
  NotStopped: "Warning",
  RecordNotStored: "Warning",
  ReportFailed: "Warning",
  Initialized: "Normal",
  RecordDeleted: "Normal",
  ReportResumed: "Normal",
  UpdateExpired: "Normal",
  UpdateSucceeded: "Normal",
} as const satisfies Record<string, EventType>;
export type AutoEvent = keyof typeof autoEvents;

export const notificationEvents = {
  DeliveryFailed: "Warning",
  NotificationsDropped: "Warning",
} as const satisfies Record<string, EventType>;
export type NotificationEvent = keyof typeof notificationEvents;
