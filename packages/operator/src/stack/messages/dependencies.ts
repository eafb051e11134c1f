/** The Stacks that depend on this one, and those on which it depends. */
import { reconcileRequestAnnotation } from "@pko/api";
import { timestamp } from "@pko/kube";

import { stackOutputsSecretOf } from "../../shared/outputs/output-keys.ts";
import type { PrerequisiteView } from "../view.ts";

export { outputMissing } from "@pko/api";

export const dependentsDeleting = (names: readonly string[]): string =>
  `${stackNames(names)} ${isOrAre(names)} being deleted and may still need this Stack, whose deletion continues afterwards.`;

export const dependentsLive = ({ names, proceedAt }: { names: readonly string[]; proceedAt: number }): string =>
  `${stackNames(names)} ${dependOrDepends(names)} on this Stack and ${isOrAre(names)} not being deleted. ` +
  `The deletion continues without waiting for ${names.length === 1 ? "it" : "them"} at ${timestamp(proceedAt)}.`;

export const dependentsIgnored = (names: readonly string[]): string =>
  `${stackNames(names)} ${dependOrDepends(names)} on this Stack and ${isOrAre(names)} not being deleted; ` +
  "its resources are destroyed nevertheless.";

export const dependentsInCycle = (names: readonly string[]): string =>
  `This Stack and ${stackNames(names)} depend on each other, so they are destroyed in any order.`;

const isOrAre = (names: readonly string[]): string => (names.length === 1 ? "is" : "are");
const dependOrDepends = (names: readonly string[]): string => (names.length === 1 ? "depends" : "depend");

export const prerequisitesUnmet = (problems: readonly string[]): string => `${problems.join("; ")}.`;
export const stackNames = (names: readonly string[]): string => names.map((name) => `Stack ${name}`).join(", ");
/** The names in a text of `stackNames`. */
export const stackNamesIn = (text: string): string[] =>
  [...text.matchAll(/Stack ([^ ,]+)/g)].map(([, name = ""]) => name);

export const prerequisiteMissing = (name: string): string => `there is no Stack ${name}`;
export const prerequisiteDeleting = (name: string): string => `Stack ${name} is being deleted`;
export const prerequisiteNotDeployed = (name: string): string => `Stack ${name} has not succeeded yet`;
export const prerequisiteOutdated = (name: string): string =>
  `Stack ${name} was changed, or an update of it was requested, and it has not run since`;
export const prerequisiteFailed = (name: string): string => `the last update of Stack ${name} failed`;
export const prerequisiteOnlyPreviewed = (name: string): string =>
  `Stack ${name} was only previewed and has to be deployed`;

export function prerequisiteTooOld({ name, endedAt }: PrerequisiteView): string {
  const ended = endedAt === undefined ? "at an unknown time" : `at ${timestamp(endedAt)}`;
  return `Stack ${name} last succeeded ${ended}, which is too long ago; another update of it is requested`;
}

export const outputNeeded = (problem: string, output: string): string =>
  `${problem}, and its output ${output} is needed`;

export const outputsSecretForeign = (name: string, output: string): string =>
  `Secret ${stackOutputsSecretOf(name)} does not belong to Stack ${name}, whose output ${output} is needed`;

export function outputsNotStored(name: string, output: string, isRequested: boolean): string {
  const message = `the outputs of Stack ${name} were not stored, and its output ${output} is needed`;
  return isRequested
    ? message
    : `${message}; to run it, set its annotation ${reconcileRequestAnnotation} to a new value`;
}
