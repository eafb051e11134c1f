/** The results of updates and their outputs. */
import { reconcileRequestAnnotation, type LastUpdate, type SkippedCommit } from "@pko/api";

import { lastTypeOf } from "../history/trigger.ts";
import type { StackView } from "../view.ts";
import type { NamedUpdate } from "./updates.ts";

export function succeeded({ type, name }: NamedUpdate, { summary, warning }: LastUpdate): string {
  const result = summary ? `The ${type} ${name} succeeded: ${summary}.` : `The ${type} ${name} succeeded.`;
  return warning ? `${result} Warning: ${warning}.` : result;
}

export function upToDate(last: LastUpdate, warnings: readonly string[], skipped?: SkippedCommit): string {
  const what = lastTypeOf(last) === "preview" ? "The last preview succeeded" : "The last update succeeded";
  const result = last.summary ? `${what}: ${last.summary}.` : `${what}.`;
  const skip = skipped ? [commitSkipped(skipped)] : [];
  return [result, ...skip, ...warnings.map((warning) => `Warning: ${warning}.`)].join(" ");
}

const commitSkipped = ({ commit, since }: SkippedCommit): string =>
  `Nothing ran for commit ${commit}: since ${since}, no file has changed that pathFilters select.`;

const failedUpdate = (last: LastUpdate): string => `The ${lastTypeOf(last)} ${last.name ?? ""} failed`.trim();
export const noError = "no error message was reported";
const errorOf = ({ message }: LastUpdate): string => message ?? noError;

/** Which attempt failed: nothing for the first, unless the number of attempts is limited. */
function attempt({ failures = 1 }: LastUpdate, maxFailures: number | undefined): string {
  if (maxFailures !== undefined) return ` (attempt ${failures} of ${maxFailures})`;
  return failures > 1 ? ` for the ${ordinal(failures)} time in a row` : "";
}

export const failed = (last: LastUpdate, maxFailures?: number): string =>
  `${failedUpdate(last)}${attempt(last, maxFailures)}: ${errorOf(last)}`;

export const failedByConflict = (last: LastUpdate, maxFailures?: number): string =>
  `${failedUpdate(last)}${attempt(last, maxFailures)}, because another update of the Pulumi stack is running: ${errorOf(last)}`;

export const retriesExhausted = (last: LastUpdate, maxFailures: number): string =>
  `${failedUpdate(last)} ${last.failures ?? 1} of ${maxFailures} times, so it is not retried: ${errorOf(last)}\n` +
  `It will be retried when the spec${lastTypeOf(last) === "destroy" ? "" : " or the source"} changes, or when you set the annotation ${reconcileRequestAnnotation} of the Stack to a new value.`;

export const cancelled = (last: LastUpdate): string =>
  `The ${lastTypeOf(last)} ${last.name ?? ""} was cancelled, as requested: ${errorOf(last)}\n` +
  "It will be retried when an update is requested, or when the spec or the source changes.";

function ordinal(count: number): string {
  const endings: Readonly<Record<number, string>> = { 1: "st", 2: "nd", 3: "rd" };
  const ending = count % 100 >= 11 && count % 100 <= 13 ? "th" : (endings[count % 10] ?? "th");
  return `${count}${ending}`;
}

export const destroyed = "The resources have been destroyed.";
export const specChanged = "The spec has changed; the next update is being prepared.";

export const outputsNotWritten = (updateName: string, why: string): string =>
  `The update ${updateName} succeeded, but its outputs were not written. ${why}`;

export const outputsSecretMissing = (secretName: string): string =>
  `Secret ${secretName} with the outputs of the Update does not exist.`;

export const outputsRejected = ({ secretName, explanation }: NonNullable<StackView["rejectedOutputs"]>): string =>
  `The outputs could not be written to ${secretName}: ${explanation}`;

export const updateDeleted = (name: string): string => `Update ${name} no longer exists.`;

export function outputsLost(updateName: string, { why, isBlocked }: { why: string; isBlocked: boolean }): string {
  const request = `set the annotation ${reconcileRequestAnnotation} of the Stack to a new value`;
  const remedy = isBlocked
    ? `Delete or rename it; then, to request an update that writes the outputs, ${request}.`
    : `The next update writes them; to request one now, ${request}.`;
  return `The update ${updateName} succeeded, but its outputs were not stored. ${why} ${remedy}`;
}
