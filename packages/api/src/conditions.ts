/** Condition types and reasons with their meanings. They are part of the API: users and tools wait for them. */

/** Condition type → reason → meaning. */
export type ConditionTable = Readonly<Record<string, Readonly<Record<string, string>>>>;

/**
 * While Ready is not True, exactly one of Reconciling and Stalled is present. While Ready is True, neither is. Drifted is
 * present if drift detection has run, PullRequestsPreviewed if pull requests are previewed.
 */
export const stackConditions = {
  Ready: {
    ProcessingCompleted: "True: the stack matches its spec and source.",
    NotReadyInProgress: "False: the operator is working or will retry; see Reconciling.",
    NotReadyStalled: "False: the operator cannot make progress; see Stalled.",
  },
  Reconciling: {
    StackProcessing: "A workspace is being prepared or an update is running.",
    RetryingAfterFailure: "The last update failed and will be retried.",
    PreviewFailed: "The last preview failed and will be retried.",
    PrerequisiteNotSatisfied: "The stack is waiting for another Stack to succeed.",
    AwaitingApproval: "The changes must be approved; the message shows them and how to approve them.",
    Suspended: "The Stack or the whole operator is suspended, so nothing starts.",
    OutsideUpdateWindow: "An update is due and waits for the next update window.",
    WaitingForSlot: "An update is due, but as many updates as allowed are running; the message shows its position.",
    WaitingForDependents: "The stack is being deleted and waits until Stacks that depend on it are destroyed.",
  },
  Stalled: {
    SpecInvalid: "The spec is invalid; the message names the fields and the fixes.",
    SourceUnavailable: "The program's source cannot be reached.",
    UpdateConflict: "Another update of the same Pulumi stack is running elsewhere.",
    PulumiVersionTooLow: "The Pulumi CLI in the workspace is too old for a feature that the spec uses.",
    WorkspaceFailed: "The workspace could not be prepared.",
    WorkspaceClassConflict:
      "More than one WorkspaceClass selects the namespace; the message names them. Nothing runs until one of them does not.",
    WorkspaceClassLimitExceeded:
      "The workspace pod would exceed a limit of the namespace's WorkspaceClass; the message names the limit.",
    UpdateFailed:
      "Several consecutive updates failed, and retries continue with increasing backoff; or an update was cancelled on request.",
    OwnershipConflict:
      "An object with a name that the stack needs has another owner; the message names the object and the fix.",
    OutputsLost: "The last update succeeded, but its outputs were not saved; the next update saves them.",
    NamespaceTerminating: "The namespace is being deleted, so no workspace can be created to run the destroy.",
    NodeLost: "The workspace pod does not respond, and its node may be lost; an administrator must confirm that.",
    ApprovalRejected: "A user rejected the changes; they are not applied until something changes.",
    ApprovalPolicyMissing:
      "The Stack requires approvals, but the admission policy that makes them trustworthy is not installed.",
    RetriesExhausted: "The update failed maxFailures times and is not retried until something changes.",
    UpdateNotStopped:
      "The update exceeded its timeout, and its workspace has not reported that it was stopped; its pod must be deleted.",
    Protected: "The Stack is being deleted although it is protected; nothing is destroyed until protect is false.",
  },
  Drifted: {
    DriftDetected: "True: resources differ from the state; the message lists them.",
    NoDrift: "False: the resources match the state.",
    DriftCheckFailed: "Unknown: the last drift check failed.",
  },
  PullRequestsPreviewed: {
    PreviewsCurrent: "True: each selected open pull request has a preview.",
    ForgePending: "Unknown: the list of pull requests has not been read yet.",
    PreviewsSuspended: "Unknown: the Stack or the whole operator is suspended, so pull requests are not read.",
    PreviewsBlocked: "False: some previews cannot be created or updated; the message names the reason and the fix.",
    ForgeUnavailable: "False: the forge does not respond or limits requests. Previews stay as they are.",
    ForgeRejected:
      "False: the forge rejects the credentials, or does not have the repository. Previews stay as they are.",
    ForgeCredentialsMissing: "False: the credentials for the forge cannot be read. Previews stay as they are.",
  },
} as const satisfies ConditionTable;

const workspaceReasons = {
  Deleting: "The workspace is being deleted.",
  RollingUpdate: "The pod is being replaced.",
  WaitingForSlot: "As many updates as allowed are running; the message shows the position in the queue.",
  WaitingForReplicas: "The pod is not ready yet.",
  ConnectionFailed: "The agent in the pod does not respond.",
  IncompatibleConfiguration: "The Pulumi CLI is too old for the configuration.",
  Installing: "The program's dependencies are being installed.",
  InstallationFailed: "The program's dependencies could not be installed.",
  Initializing: "The Pulumi stacks are being selected and configured.",
  OwnershipConflict:
    "An object with a name that the workspace needs has another owner; the message names the object and the fix.",
  InitializationFailed: "A Pulumi stack could not be selected or configured.",
  WorkspaceClassConflict: "More than one WorkspaceClass selects the namespace; the message names them.",
  WorkspaceClassLimitExceeded: "The pod would exceed a limit of the namespace's WorkspaceClass; the message names it.",
  Succeeded: "The workspace is ready for updates.",
  NodeLost: "The pod does not respond, and its node may be lost; an administrator must confirm that.",
} as const;

export const workspaceConditions = {
  Ready: workspaceReasons,
  Stalled: workspaceReasons,
} as const satisfies ConditionTable;

const updateReasons = {
  Progressing: "The operation has not finished.",
  Complete: "The operation has finished.",
  Updated: "The operation was run.",
  UpdateSucceeded: "Pulumi succeeded.",
  UpdateFailed: "Pulumi failed.",
  Aborted: "A restart interrupted the operation.",
  Canceled: "The operation was cancelled.",
  TimedOut: "The operation exceeded its timeout and was stopped.",
  WorkspaceNotFound: "No Workspace with the given name exists.",
  WorkspaceNotReady: "The Workspace is not ready yet.",
  WaitingForSlot: "As many updates as allowed are running; the message shows the position in the queue.",
  TransientFailure: "The workspace could not be reached; the operator will retry.",
  Failed: "The operation did not succeed.",
  Unknown: "The result of the operation is unknown.",
} as const;

const updateStalls = {
  NodeLost: "The pod does not respond, and its node may be lost; an administrator must confirm that.",
  NotStopped:
    "The operation exceeded its timeout, and the workspace has not reported that it was stopped; its pod must be deleted.",
} as const;

/**
 * Ready and Stalled follow the conventions of kstatus, by which Flux, Helm and other tools wait for an object. Ready is True
 * after success. Stalled is present only while it is True: the operation failed, or needs a user's action.
 */
export const updateConditions = {
  Ready: updateReasons,
  Progressing: updateReasons,
  Failed: updateReasons,
  Complete: updateReasons,
  Stalled: { ...updateReasons, ...updateStalls },
} as const satisfies ConditionTable;

export const programConditions = {
  Ready: { Observed: "True: Stacks can use the current program." },
} as const satisfies ConditionTable;

/** Stalled is present only while it is True: a user or an administrator has to act. */
export const receiverConditions = {
  Ready: {
    Receiving: "True: webhooks are accepted.",
    NotReadyStalled: "False: webhooks are rejected; see Stalled.",
  },
  Stalled: {
    SecretMissing: "The Secret or its key does not exist, or the operator may not read it.",
    SecretTooShort: "The secret has fewer than 16 characters.",
    WebhooksDisabled: "Webhooks are disabled in the operator; an administrator enables them.",
  },
} as const satisfies ConditionTable;

/** Stalled is present only while it is True: a user or an administrator has to act. */
export const notificationConditions = {
  Ready: {
    Delivering: "True: events are sent.",
    DeliveryFailed: "False: the last message was not delivered and is sent again; the message has the cause.",
    NotificationSuspended: "False: the Notification is suspended.",
    NotReadyStalled: "False: nothing can be sent; see Stalled.",
  },
  Stalled: {
    SecretMissing: "The Secret or its key url does not exist, or the operator may not read it.",
    TargetInvalid: "The URL, the token or the CA certificates are not valid.",
  },
} as const satisfies ConditionTable;

type ConditionTypeOf<Table> = keyof Table & string;
type ReasonOf<Table, Type extends keyof Table> = keyof Table[Type] & string;

type StackConditionType = ConditionTypeOf<typeof stackConditions>;
export type StackReason<Type extends StackConditionType> = ReasonOf<typeof stackConditions, Type>;
export type ReceiverStall = ReasonOf<typeof receiverConditions, "Stalled">;
export type NotificationStall = ReasonOf<typeof notificationConditions, "Stalled">;
export type WorkspaceReason = keyof typeof workspaceReasons;
export type UpdateConditionType = ConditionTypeOf<typeof updateConditions>;
export type UpdateReason = keyof typeof updateReasons;
export type UpdateStalledReason = keyof typeof updateStalls;

export const conditionTypes = (table: ConditionTable): string[] => Object.keys(table);
