/** The texts of reports: problems in the status of an Update, and what the forge shows. */
import type { ForgeErrorKind } from "@pko/forge";

export const secretMissing = (name: string): string =>
  `The result is not reported, because Secret ${name} does not exist; create it in the namespace of the Stack.`;

export const secretForbidden = (name: string): string =>
  `The result is not reported, because the operator may not read Secret ${name}; an administrator has to extend its role.`;

export const secretInvalid = (message: string): string => `The result is not reported: ${message}`;

export const appRefused = (message: string): string =>
  `The result is not reported, because the GitHub App cannot be used: ${message}; check report.url, the keys of the Secret, and the installation of the App.`;

const remedies: Readonly<Record<ForgeErrorKind, string>> = {
  unauthorized: "give the token the permission to set commit statuses and to write comments",
  notFound: "check report.url and report.repository, and whether the token may read the repository",
  rateLimited: "it is reported later",
  invalid: "check report.url and report.repository; the commit may also no longer exist",
  unavailable: "it is reported when the forge responds",
};

export const notDelivered = (kind: ForgeErrorKind, message: string): string =>
  `The result is not reported, because ${message}; ${remedies[kind]}.`;

export const resumed = "The result is reported again.";

/** Descriptions of commit statuses. */
export const waiting = "waiting to run";
export const runningPreview = "the preview is running";
export const runningUpdate = "the update is running";
export const abandoned = "no result: its Stack no longer previews pull requests";
export const cancelled = "no result: the preview was cancelled";
export const interrupted = "no result: the preview was interrupted";
export const awaitingApproval = (summary: string): string => `${summary}; not applied yet`;
export const planRejected = "the plan was rejected";
export const planSuperseded = "the plan was superseded before it was applied";

const failures: Readonly<Record<string, string>> = {
  conflict: "another update has locked the stack",
  invalidToken: "the access token is not valid",
  pendingOperations: "operations are pending",
  programError: "the program failed",
  pluginMissing: "a plugin is missing",
  policyViolation: "a mandatory policy is violated",
  versionTooLow: "the Pulumi CLI is too old",
  stackNotFound: "the stack does not exist",
  unexpectedChanges: "there are unexpected changes",
  cancelled: "it was cancelled",
  interrupted: "it was interrupted",
  timedOut: "it took too long",
  planChanged: "the program differs from the plan",
  planStale: "the state has changed since the plan",
  planMismatch: "it would do something that is not planned",
  planUnreadable: "the plan cannot be decrypted",
  planStopped: "the plan was applied in part",
};

export const failed = (operation: string, errorClass: string | undefined): string => {
  const reason = errorClass === undefined ? undefined : failures[errorClass];
  return reason === undefined ? `the ${operation} failed` : `the ${operation} failed: ${reason}`;
};

/** Titles in comments. */
export const destructiveChanges = "Replacements and deletions";
export const otherChanges = "Other changes";
export const policyViolations = "Policy violations";
export const outputs = "Outputs";
export const errorOutput = "Error";
export const secretOutput = "secret";
export const omitted = (count: number): string => `… and ${count} more`;
export const noDetails = "The record of the run is not available, so the changes are not listed.";
export const incompleteRecord = (count: number): string =>
  `The record of the run is limited and omits ${count} events, so changes may be missing here.`;
