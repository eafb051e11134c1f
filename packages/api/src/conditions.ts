/** Conditions and their reasons, with what each tells. They are API: tools and people wait for them. */

/** Condition type → reason → meaning. */
export type ConditionTable = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** While Ready is not True, exactly one of Reconciling and Stalled is present; neither when it is. */
export const stackConditions = {
  Ready: {
    ProcessingCompleted: "True: the stack matches its spec and source.",
    NotReadyInProgress: "False: work is going on or will be tried again; see Reconciling.",
    NotReadyStalled: "False: something stands in the way; see Stalled.",
  },
  Reconciling: {
    StackProcessing: "A workspace is being prepared or an update is running.",
    RetryingAfterFailure: "The last update failed and will be tried again.",
    PreviewFailed: "The last preview failed and will be tried again.",
    PrerequisiteNotSatisfied: "The stack waits for another Stack.",
  },
  Stalled: {
    SpecInvalid: "The spec cannot be carried out as written; the message names the fields.",
    SourceUnavailable: "The program's source cannot be reached.",
    UpdateConflict: "Another update of the same Pulumi stack is running elsewhere.",
    PulumiVersionTooLow: "The workspace's Pulumi CLI is too old for what the spec asks.",
    WorkspaceFailed: "The workspace could not be prepared.",
    UpdateFailed:
      "Several updates in a row failed, and they are still tried again, ever more rarely; or one was cancelled on request.",
    OwnershipConflict: "An object of somebody else has a name that the stack needs; the message names it and the fix.",
    OutputsLost: "The last update succeeded, but its outputs were not kept; the next update writes them.",
    NamespaceTerminating: "The namespace is being deleted, so no workspace can run the destroy.",
    NodeLost: "The workspace's pod does not respond, and its node may be lost; somebody has to confirm that.",
  },
} as const satisfies ConditionTable;

const workspaceReasons = {
  Deleting: "The workspace is being deleted.",
  RollingUpdate: "The pod is being replaced.",
  WaitingForReplicas: "The pod is not ready yet.",
  ConnectionFailed: "The pod's agent does not answer.",
  IncompatibleConfiguration: "The Pulumi CLI is too old for the configuration.",
  Installing: "The program's dependencies are being installed.",
  InstallationFailed: "The program's dependencies could not be installed.",
  Initializing: "The Pulumi stacks are being selected and configured.",
  OwnershipConflict:
    "An object of somebody else has a name that the workspace needs; the message names it and the fix.",
  InitializationFailed: "A Pulumi stack could not be selected or configured.",
  Succeeded: "The workspace is prepared.",
  NodeLost: "The pod does not respond, and its node may be lost; somebody has to confirm that.",
} as const;

export const workspaceConditions = {
  Ready: workspaceReasons,
  Stalled: workspaceReasons,
} as const satisfies ConditionTable;

const updateReasons = {
  Progressing: "The operation has not ended.",
  Complete: "The operation has ended.",
  Updated: "The operation was carried out.",
  UpdateSucceeded: "Pulumi succeeded.",
  UpdateFailed: "Pulumi failed.",
  Aborted: "The operation was broken off by a restart.",
  Canceled: "The operation was cancelled.",
  WorkspaceNotFound: "There is no Workspace of the given name.",
  WorkspaceNotReady: "The Workspace is not ready yet.",
  TransientFailure: "The workspace could not be reached, and will be tried again.",
  Failed: "The operation ended without success.",
  Unknown: "Nobody knows how the operation ended.",
} as const;

const updateStalls = {
  NodeLost: "The pod does not respond, and its node may be lost; somebody has to confirm that.",
} as const;

/** Stalled is present only while it is True. */
export const updateConditions = {
  Progressing: updateReasons,
  Failed: updateReasons,
  Complete: updateReasons,
  Stalled: updateStalls,
} as const satisfies ConditionTable;

type ConditionTypeOf<Table> = keyof Table & string;
type ReasonOf<Table, Type extends keyof Table> = keyof Table[Type] & string;

type StackConditionType = ConditionTypeOf<typeof stackConditions>;
export type StackReason<Type extends StackConditionType> = ReasonOf<typeof stackConditions, Type>;
export type WorkspaceReason = keyof typeof workspaceReasons;
export type UpdateConditionType = ConditionTypeOf<typeof updateConditions>;
export type UpdateReason = keyof typeof updateReasons;
export type UpdateStall = keyof typeof updateStalls;

export const conditionTypes = (table: ConditionTable): string[] => Object.keys(table);
