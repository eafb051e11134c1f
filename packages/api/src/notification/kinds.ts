/** What a Notification reports, and how severe it is. */

export const severities = ["Info", "Warning", "Error"] as const;
export type Severity = (typeof severities)[number];

export const notificationKinds = {
  UpdateSucceeded: "Info",
  UpdateFailed: "Error",
  PreviewSucceeded: "Info",
  PreviewFailed: "Error",
  AwaitingApproval: "Warning",
  Drifted: "Warning",
  DriftCheckFailed: "Warning",
  Stalled: "Error",
  Destroyed: "Info",
} as const satisfies Readonly<Record<string, Severity>>;
export type OccurrenceKind = keyof typeof notificationKinds;

export const occurrenceKinds = Object.keys(notificationKinds) as OccurrenceKind[];
