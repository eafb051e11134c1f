/** All reads of a reconcile of pull request previews. Nothing here waits for a forge. */
import {
  isComplete,
  missingObject,
  normalizeStack,
  reconcileRequestAnnotation,
  withoutPassword,
  withoutUser,
  type NormalStack,
  type Stack,
  type Update,
} from "@pko/api";
import { refKey, type Key, type Moment, type Store } from "@pko/kube";

import { secretValues } from "../forge/credentials.ts";
import { versionOf } from "../inputs/reference-poller.ts";
import type { Suspension } from "../shared/channels/suspension.ts";
import { findCondition } from "../shared/objects/conditions.ts";
import { findSecret } from "../shared/objects/find-secret.ts";
import { isDeleting, previewOwnerIndex, pullRequestNumberOf, wantsPreviews } from "../shared/pull-request-preview.ts";
import { commitOf, isReportDue, isUpdateOf, isUpdateOfFormer, workspaceIndex } from "../shared/updates.ts";
import { targetAt } from "./forge.ts";
import * as messages from "./messages.ts";
import { noHeads, observeHeads, unlistedHeads, type HeadsWorld } from "./observe-heads.ts";
import type { ForgeFollow, ForgePollResult, PullRequestPoller } from "./poller.ts";
import { previewNameOf } from "./preview-stack.ts";
import type { ForgeView, PreviewRun, PullRequestsView } from "./view.ts";

export interface PullRequestsWorld extends HeadsWorld {
  /** With `previewIndexers`. */
  readonly stacks: Store<Stack>;
  /** With `updateIndexers`. */
  readonly updates: Store<Update>;
  readonly suspension: Pick<Suspension, "isOn">;
  readonly poller: Pick<PullRequestPoller, "latest">;
}

/** Undefined for a Stack that does not exist, or has nothing to do with pull requests. */
export async function observePullRequests(
  world: PullRequestsWorld,
  key: Key,
  { now, signal }: Moment<never>,
): Promise<PullRequestsView | undefined> {
  const stack = world.stacks.get(key);
  if (!stack) return undefined;
  const previews = previewsOf(world.stacks, stack);
  if (previews.length === 0 && !mentionsPullRequests(stack)) return undefined;
  const spec = normalizeStack(stack);
  const operatorSuspended = world.suspension.isOn;
  const isRead = spec.ok && spec.value.pullRequests && !isDeleting(stack) && !spec.value.suspend && !operatorSuspended;
  const forge = isRead ? await observeForge(world, { key, stack, spec: spec.value, previews }, signal) : unread;
  const open = forge.forge.kind === "listed" ? forge.forge.pullRequests : undefined;
  const unlisted = wantsPreviews(stack) ? unlistedHeads : noHeads;
  const heads = isRead && open ? await observeHeads(world, { key, stack, spec: spec.value, open }, signal) : unlisted;
  const runs = runsOf(world.updates, stack, previews);
  return { now, stack, spec, operatorSuspended, previews, runs, ...forge, ...heads };
}

/** A copy of a preview has another name, and must not be taken for it. */
function previewsOf(stacks: PullRequestsWorld["stacks"], { metadata }: Stack): Stack[] {
  return stacks.byIndex(previewOwnerIndex, metadata.uid ?? "").filter((preview) => {
    const number = pullRequestNumberOf(preview);
    return number !== undefined && preview.metadata.name === previewNameOf(metadata.name ?? "", number);
  });
}

/**
 * Anybody may create an Update that names the Workspace of a preview. Of previews that were cancelled and no longer exist, only what
 * was reported before counts, which nobody but the operator can record.
 */
export function runsOf(
  updates: Pick<Store<Update>, "byIndex">,
  { metadata, status }: Stack,
  previews: readonly Stack[],
): PreviewRun[] {
  const { name = "", namespace = "" } = metadata;
  const present = new Map(previews.map((preview) => [pullRequestNumberOf(preview) ?? 0, preview]));
  const cancelled = (status?.cancelledPreviews ?? []).map(({ number }) => number);
  return [...new Set([...present.keys(), ...cancelled])].flatMap((number) => {
    const previewName = previewNameOf(name, number);
    const preview = present.get(number);
    return updates.byIndex(workspaceIndex, refKey({ namespace, name: previewName })).flatMap((update): PreviewRun[] => {
      const commit = commitOf(update);
      const isReported = isComplete(update) && update.status?.report !== undefined && !isReportDue(update);
      const isRun = preview && isUpdateOf(update, preview);
      const isFormerRun = isReported && isUpdateOfFormer(update, previewName);
      return commit !== undefined && (isRun || isFormerRun) ? [{ number, commit, isReported }] : [];
    });
  });
}

/** In its spec, or in its status. */
export function mentionsPullRequests(stack: Stack): boolean {
  const spec: Partial<Stack["spec"]> | undefined = stack.spec;
  const isShown = stack.status?.pullRequests ?? findCondition(stack, "PullRequestsPreviewed");
  return spec?.pullRequests !== undefined || isShown !== undefined;
}

type Observed = Pick<PullRequestsView, "forge" | "followed" | "secrets">;

const unread: Observed = { forge: { kind: "none" }, secrets: [] };

interface Subject {
  readonly key: Key;
  readonly stack: Stack;
  readonly spec: NormalStack;
  readonly previews: readonly Stack[];
}

async function observeForge(
  { client, poller }: PullRequestsWorld,
  { key, stack, spec, previews }: Subject,
  signal: AbortSignal,
): Promise<Observed> {
  const { source, namespace, pullRequests } = spec;
  if (source.kind !== "git" || !pullRequests) return unread;
  const { url } = source.repository;
  const target = targetAt(pullRequests.forge, url);
  if (typeof target === "string") return { forge: missing(withoutPassword(url), target), secrets: [] };
  const shown = withoutUser(target.repository);
  const { name } = pullRequests.forge.secretRef;
  const found = await findSecret(client, { namespace, name }, signal);
  const secret = found === "forbidden" ? undefined : found;
  const secrets = [{ kind: "Secret", namespace, name, version: versionOf(secret) }] as const;
  if (!secret) return { forge: missing(shown, missingObject(`Secret ${name}`, secretUser)), secrets };
  const host = URL.parse(target.url ?? "")?.host ?? "";
  const wanted: ForgeFollow = {
    repository: { target, host, url, secret: { name, values: secretValues(secret.data) } },
    everyMs: pullRequests.everyMs,
    request: stack.metadata.annotations?.[reconcileRequestAnnotation] ?? "",
    previews: previews.flatMap((preview) => pullRequestNumberOf(preview) ?? []),
  };
  const seen = poller.latest(key, wanted);
  return { forge: forgeView(shown, seen), followed: { wanted, seen }, secrets };
}

const secretUser = "spec.pullRequests.secretRef";

const missing = (repository: string, why: string): ForgeView => ({
  kind: "failed",
  problem: "credentials",
  message: messages.forgeFailed(repository, why),
});

function forgeView(repository: string, result: ForgePollResult): ForgeView {
  if (result.kind !== "failed") return result;
  const { kind, problem, message } = result;
  return { kind, problem, message: messages.forgeFailed(repository, message) };
}
