/** All reads of a report's pass, except those of its steps. */
import { isComplete, stackKind, type ReportSettings, type Stack, type StackSpec, type Update } from "@pko/api";
import { targetOf } from "@pko/forge";
import { isOwnedBy, keyOf, refKey, type Key, type Moment, type Store } from "@pko/kube";

import type { ForgeLimits } from "../forge/forge-limits.ts";
import type { Suspension } from "../shared/channels/suspension.ts";
import { isDeleting, parentOf, pullRequestNumberOf, wantsPreviews } from "../shared/pull-request-preview.ts";
import { commitOf, workspaceIndex, workspaceKeyOf } from "../shared/updates.ts";
import type { ClassReader } from "../shared/workspace-classes.ts";
import { operationOf } from "./desired/commit-status.ts";
import { planFate } from "./plan-fate.ts";
import type { Delivered, ReportMemory, ReportView, Subject } from "./view.ts";

export interface ReportWorld {
  /** With `updateIndexers`. */
  readonly updates: Store<Update>;
  readonly stacks: Store<Stack>;
  readonly classes: ClassReader;
  readonly suspension: Pick<Suspension, "isOn">;
  readonly limits: Pick<ForgeLimits, "stateOf">;
  readonly unrecorded: ReadonlyMap<Key, Delivered>;
}

/** Undefined for an Update that does not exist. */
export function observeReport(
  world: ReportWorld,
  key: Key,
  { now, memory }: Pick<Moment<ReportMemory>, "now" | "memory">,
): ReportView | undefined {
  const update = world.updates.get(key);
  if (!update) return undefined;
  const subject = subjectOf(world, update);
  const unrecorded = world.unrecorded.get(key);
  return { now, update, ...(subject && { subject }), ...(memory && { memory }), ...(unrecorded && { unrecorded }) };
}

function subjectOf(world: ReportWorld, update: Update): Subject | undefined {
  const stack = stackOf(world.stacks, update);
  const settings = stack && reportSettings(stack, world.classes);
  const commit = commitOf(update);
  const target = settings && targetOf(settings, specOf(stack)?.projectRepo || undefined);
  if (!stack || !target || commit === undefined) return undefined;
  return {
    stack,
    settings,
    target,
    commit,
    ...pullRequestOf(stack),
    ...comparedWithOthers(world.updates, stack, update),
    isNamed: namesIn(stack).includes(update.metadata.name ?? ""),
    isSuspended: world.suspension.isOn || (specOf(stack)?.suspend ?? false),
    isAbandoned: isAbandoned(world.stacks, stack),
    forge: world.limits.stateOf(forgeLine(stack, target.url), keyOf(update)),
  };
}

type Compared = Pick<Subject, "isSuperseded" | "isCommentOutdated" | "plan" | "commentID">;

/** What depends on the other Updates of the Stack. */
function comparedWithOthers(updates: Store<Update>, stack: Stack, update: Update): Compared {
  const siblings = siblingsOf(updates, stack, update);
  const later = siblings.filter((other) => isLater(other, update));
  const plan = planFate({ stack, update, later });
  const commentID = update.status?.report?.commentID ?? commentIn(siblings);
  return {
    isSuperseded: later.some((other) => commitOf(other) === commitOf(update)),
    isCommentOutdated: later.some((other) => isPreviewOfCommit(other)),
    ...(plan && { plan }),
    ...(commentID !== undefined && { commentID }),
  };
}

/** The Updates that the Stack's status names. A plan that waits for an approval is no longer the current update, and never the last. */
export const namesIn = ({ status }: Stack): string[] =>
  [status?.currentUpdate?.name, status?.lastUpdate?.name, status?.approval?.updateName].filter(
    (name) => name !== undefined,
  );

/** Requests of a namespace to a forge. */
export const forgeLine = ({ metadata }: Stack, url: string | undefined): string =>
  `${metadata.namespace ?? ""} ${URL.parse(url ?? "")?.host ?? ""}`;

/** The schema requires a spec, but an object from before may have none. */
const specOf = ({ spec }: Stack): Partial<StackSpec> | undefined => spec;

export function reportSettings(stack: Stack, classes: ClassReader): ReportSettings | undefined {
  const own = specOf(stack)?.report;
  if (own) return own;
  const found = classes(stack.metadata.namespace ?? "");
  return found.kind === "one" ? found.spec.report : undefined;
}

function stackOf(stacks: Store<Stack>, { metadata }: Update): Stack | undefined {
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === stackKind.kind);
  const stack = owner && stacks.get(refKey({ namespace: metadata.namespace ?? "", name: owner.name }));
  return stack?.metadata.uid === owner?.uid ? stack : undefined;
}

const isPreviewOfCommit = (update: Update): boolean =>
  commitOf(update) !== undefined && operationOf(update) === "preview";

function pullRequestOf(stack: Stack): { readonly pullRequest?: number } {
  const pullRequest = pullRequestNumberOf(stack);
  return pullRequest === undefined ? {} : { pullRequest };
}

/** A Stack that still previews pull requests reports itself which of its previews have no result. */
function isAbandoned(stacks: Store<Stack>, preview: Stack): boolean {
  const owner = parentOf(preview);
  if (!owner || !isDeleting(preview) || pullRequestNumberOf(preview) === undefined) return false;
  const parent = stacks.get(refKey({ namespace: preview.metadata.namespace ?? "", name: owner.name }));
  return parent?.metadata.uid !== owner.uid || !wantsPreviews(parent);
}

/** The other Updates that the Stack owns. Anybody may create one in its Workspace. */
function siblingsOf(updates: Store<Update>, stack: Stack, update: Update): Update[] {
  const owner = { uid: stack.metadata.uid ?? "" };
  return updates
    .byIndex(workspaceIndex, workspaceKeyOf(update))
    .filter((other) => other.metadata.uid !== update.metadata.uid && isOwnedBy(other, owner));
}

/** Times have a resolution of a second. An Update is created when the one before it has ended. */
function isLater(other: Update, update: Update): boolean {
  const [one, two] = [other, update].map(({ metadata }) => metadata.creationTimestamp ?? "");
  if (one !== two) return (one ?? "") > (two ?? "");
  if (isComplete(other) !== isComplete(update)) return isComplete(update);
  const [oneEnd, twoEnd] = [other, update].map(({ metadata, status }) => `${status?.endTime ?? ""} ${metadata.name}`);
  return (oneEnd ?? "") > (twoEnd ?? "");
}

/** That of the latest Update that has recorded one. */
function commentIn(updates: readonly Update[]): string | undefined {
  const reports = updates
    .flatMap(({ status }) => status?.report ?? [])
    .filter(({ commentID }) => commentID !== undefined);
  return reports.toSorted((a, b) => ((a.time ?? "") < (b.time ?? "") ? 1 : -1))[0]?.commentID;
}
