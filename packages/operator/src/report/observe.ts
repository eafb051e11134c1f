/** All reads of a report's pass, except those of its steps. */
import { stackKind, type Stack, type StackSpec, type Update } from "@pko/api";
import { targetOf } from "@pko/forge";
import { keyOf, refKey, type Change, type Key, type Moment, type Store } from "@pko/kube";

import type { ForgeLimits } from "../forge/forge-limits.ts";
import type { Suspension } from "../shared/channels/suspension.ts";
import {
  isAbandoned,
  parentOf,
  previewOwnerIndex,
  pullRequestNumberOf,
  wantsPreviews,
} from "../shared/pull-request-preview.ts";
import { reportSettings } from "../shared/reports.ts";
import { commitOf, isLater, isUpdateOf, workspaceIndex, workspaceKeyOf } from "../shared/updates.ts";
import type { ClassReader } from "../shared/workspace-classes.ts";
import { operationOf } from "./desired/commit-status.ts";
import { planFate } from "./plan-fate.ts";
import { hasEarlierResult, hasSharedResult } from "./void-updates.ts";
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
  { now, monotonic, memory }: Pick<Moment<ReportMemory>, "now" | "monotonic" | "memory">,
): ReportView | undefined {
  const update = world.updates.get(key);
  if (!update) return undefined;
  const toWallClock = (time: number): number => now + (time - monotonic);
  const subject = subjectOf(world, update, toWallClock);
  const unrecorded = world.unrecorded.get(key);
  return {
    now,
    update,
    ...(subject && { subject }),
    ...(memory && { memory: { ...memory, retryAt: toWallClock(memory.retryAt) } }),
    ...(unrecorded && { unrecorded }),
  };
}

/** `toWallClock`: from the monotonic clock. */
function subjectOf(world: ReportWorld, update: Update, toWallClock: (time: number) => number): Subject | undefined {
  const stack = stackOf(world.stacks, update);
  const settings = stack && reportSettings(stack, world.classes);
  const commit = commitOf(update);
  const target = settings && targetOf(settings, specOf(stack)?.projectRepo || undefined);
  if (!stack || !target || commit === undefined) return undefined;
  const { isBusy, restUntil } = world.limits.stateOf(forgeLine(stack, target.url), keyOf(update));
  return {
    stack,
    settings,
    target,
    commit,
    ...pullRequestOf(stack),
    ...comparedWithOthers(world, stack, update),
    isNamed: namesIn(stack).includes(update.metadata.name ?? ""),
    isSuspended: world.suspension.isOn || (specOf(stack)?.suspend ?? false),
    forge: { isBusy, restUntil: toWallClock(restUntil) },
  };
}

type Compared = Pick<Subject, "isVoid" | "isSuperseded" | "isCommentOutdated" | "isAbandoned" | "plan" | "commentID">;

/** What depends on the other Updates of the Stack. The end of a preview that is abandoned is reported in any case. */
function comparedWithOthers(world: ReportWorld, stack: Stack, update: Update): Compared {
  const siblings = siblingsOf(world.updates, stack, update);
  const isEnding = isAbandoned(world.stacks, stack);
  const isVoid = (each: Update): boolean => !isEnding && hasEarlierResult(each, [update, ...siblings]);
  const later = siblings.filter((other) => isLater(other, update) && !isVoid(other));
  const plan = planFate({ stack, update, later });
  const commentID = update.status?.report?.commentID ?? commentIn(siblings);
  return {
    isVoid: isVoid(update) || (!isEnding && hasSharedResult(update, sharingStatus(world, stack, update))),
    isSuperseded: later.some((other) => commitOf(other) === commitOf(update)),
    isCommentOutdated: later.some((other) => isPreviewOfCommit(other)),
    isAbandoned: isEnding,
    ...(plan && { plan }),
    ...(commentID !== undefined && { commentID }),
  };
}

/** The Stacks whose Updates are reported differently after the change. They include the previews of a Stack that starts or stops previewing. */
export function stacksConcernedBy(stacks: Pick<Store<Stack>, "byIndex">, { before, after }: Change<Stack>): Stack[] {
  const own = after ? [after] : [];
  const [had, has] = [before, after].map((stack) => stack !== undefined && wantsPreviews(stack));
  if (had === has) return own;
  return [...own, ...stacks.byIndex(previewOwnerIndex, (before ?? after)?.metadata.uid ?? "")];
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

function stackOf(stacks: Store<Stack>, update: Update): Stack | undefined {
  const { metadata } = update;
  const owner = metadata.ownerReferences?.find(({ kind }) => kind === stackKind.kind);
  const stack = owner && stacks.get(refKey({ namespace: metadata.namespace ?? "", name: owner.name }));
  return stack && isUpdateOf(update, stack) ? stack : undefined;
}

const isPreviewOfCommit = (update: Update): boolean =>
  commitOf(update) !== undefined && operationOf(update) === "preview";

function pullRequestOf(stack: Stack): { readonly pullRequest?: number } {
  const pullRequest = pullRequestNumberOf(stack);
  return pullRequest === undefined ? {} : { pullRequest };
}

/** The other Updates of the Stack. Anybody may create one in its Workspace. */
function siblingsOf(updates: Store<Update>, stack: Stack, update: Update): Update[] {
  return updates
    .byIndex(workspaceIndex, workspaceKeyOf(update))
    .filter((other) => other.metadata.uid !== update.metadata.uid && isUpdateOf(other, stack));
}

/** The Updates of other pull requests of the same Stack with the same head, or whose head is the commit of the Update. */
function sharingStatus({ stacks, updates }: ReportWorld, stack: Stack, update: Update): Update[] {
  const commits = new Set([commitOf(update), specOf(stack)?.commit].filter((commit) => commit !== undefined));
  const parent = pullRequestNumberOf(stack) === undefined ? undefined : parentOf(stack);
  if (!parent) return [];
  return stacks
    .byIndex(previewOwnerIndex, parent.uid)
    .filter((other) => commits.has(specOf(other)?.commit ?? "") && other.metadata.uid !== stack.metadata.uid)
    .flatMap((other) => updates.byIndex(workspaceIndex, keyOf(other)).filter((each) => isUpdateOf(each, other)));
}

/** That of the latest Update that has recorded one. */
function commentIn(updates: readonly Update[]): string | undefined {
  const reports = updates
    .flatMap(({ status }) => status?.report ?? [])
    .filter(({ commentID }) => commentID !== undefined);
  return reports.toSorted((a, b) => ((a.time ?? "") < (b.time ?? "") ? 1 : -1))[0]?.commentID;
}
