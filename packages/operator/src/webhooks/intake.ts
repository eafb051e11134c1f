/**
 * Handles a webhook in the replica that leads: verified over its raw bytes before anything in it is read, it can only have
 * repositories polled that Stacks of the Receiver's namespace follow.
 */
import { withoutPassword, type Receiver } from "@pko/api";
import { globSelector } from "@pko/git";
import { keyOf, type Clock, type Key } from "@pko/kube";

import type { Push, Pushes } from "../shared/channels/pushes.ts";
import { isSameRepository, repositoryId } from "../shared/repository-id.ts";
import type { ActiveReceivers } from "./active-receivers.ts";
import { forges } from "./forges/index.ts";
import type { Hook, HookContent } from "./forges/hook.ts";
import { rejections, type HookResult } from "./results.ts";

interface IntakeOptions {
  readonly receivers: ActiveReceivers;
  readonly pushes: Pushes;
  readonly clock: Clock;
}

export type Intake = (receiver: Receiver, hook: Hook) => HookResult;

export function intake({ receivers, pushes, clock }: IntakeOptions): Intake {
  return (receiver, hook) => {
    const key = keyOf(receiver);
    const secret = receivers.secretOf(key);
    if (secret === undefined) return "notReady";
    const forge = forges[receiver.spec.type];
    const at = clock.now();
    if (!forge.verify(hook, secret)) return "badSignature";
    const content = forge.parse(hook);
    const { result, repository, stacks } = deliver(receiver, content, pushes);
    if (rejections.has(result)) return result;
    const details = { ...(repository !== undefined && { repository }), ...(stacks !== undefined && { stacks }) };
    receivers.record(key, { delivery: { at, ...details } });
    return result;
  };
}

/** For a Receiver that exists: rejected requests are recorded, so that its user finds a wrong secret. */
export function recordRejection(
  receivers: ActiveReceivers,
  key: Key,
  rejection: { at: number; reason: HookResult },
): void {
  if (rejections.has(rejection.reason)) receivers.record(key, { rejection });
}

interface Delivered {
  readonly result: HookResult;
  readonly repository?: string;
  readonly stacks?: number;
}

function deliver(receiver: Receiver, content: HookContent, pushes: Pushes): Delivered {
  switch (content.kind) {
    case "ping":
      return { result: "ping" };
    case "other":
      return { result: "otherEvent" };
    case "malformed":
      return { result: "malformed" };
    case "push":
    case "pullRequest": {
      const repository = shown(content.repositories[0] ?? "");
      const push = acceptedPush(receiver, content);
      if (!push) return { result: "filtered", repository };
      const stacks = pushes.report(push);
      return { result: stacks > 0 ? "accepted" : "notFollowed", repository, stacks };
    }
  }
}

const longestShown = 256;

/** Without credentials, which a URL in a payload should not have. */
const shown = (url: string): string => withoutPassword(url).slice(0, longestShown);

type RepositoryContent = Extract<HookContent, { kind: "push" | "pullRequest" }>;

/** Webhooks may arrive 20 times a second, so matching takes a few milliseconds at most. What is not matched then is polled. */
const maxRefWork = 2_000_000;

/** Undefined if the Receiver's filter leaves nothing of it. The filter for refs is about pushes only. */
export function acceptedPush({ metadata, spec }: Receiver, content: RepositoryContent): Push | undefined {
  const { namespace = "" } = metadata;
  const { repositories } = content;
  const { repositories: wanted = [], refs: wantedRefs = [] } = spec.filter ?? {};
  const ids = repositories.flatMap((url) => repositoryId(url) ?? []);
  const isWanted = (url: string): boolean => {
    const id = repositoryId(url);
    return id !== undefined && ids.some((pushed) => isSameRepository(id, pushed));
  };
  if (wanted.length > 0 && !wanted.some(isWanted)) return undefined;
  if (content.kind === "pullRequest") return { namespace, repositories, refs: [], isPullRequest: true };
  const { refs } = content;
  const accepted = refs.filter(globSelector(wantedRefs, maxRefWork));
  return refs.length > 0 && accepted.length === 0 ? undefined : { namespace, repositories, refs: accepted };
}
