/** The events of pull request previews. Pure: the status shows what was reported before. */
import { stackEvents, type StackEvent } from "@pko/api";
import type { EventNote } from "@pko/kube";

import { findCondition } from "../shared/objects/conditions.ts";
import * as messages from "./messages.ts";
import { pullRequestsStatus } from "./status.ts";
import type { PullRequestsPlan } from "./steps.ts";
import type { PullRequestsView } from "./view.ts";

const eventFor = (reason: StackEvent, message: string): EventNote => ({ type: stackEvents[reason], reason, message });

export function pullRequestEvents(view: PullRequestsView, plan: PullRequestsPlan): EventNote[] {
  const { pullRequests: before = [] } = view.stack.status ?? {};
  const { pullRequests: after = [] } = pullRequestsStatus(view, plan);
  const known = new Map(before.map((each) => [each.number, each]));
  const kept = new Set(after.map(({ number }) => number));
  const changes = after.flatMap(({ number, commit, stack }): EventNote[] => {
    const former = known.get(number);
    if (!former) return [eventFor("StackPullRequestOpened", messages.opened(number, stack))];
    return former.commit === commit ? [] : [eventFor("StackPullRequestMoved", messages.moved(number, commit))];
  });
  const closed = before.filter(({ number }) => !kept.has(number));
  return [
    ...changes,
    ...closed.map(({ number, stack }) => eventFor("StackPullRequestClosed", messages.closed(number, stack))),
    ...failureEvents(view, plan),
  ];
}

function failureEvents({ stack }: PullRequestsView, { outcome }: PullRequestsPlan): EventNote[] {
  const message =
    outcome.kind === "failing" ? outcome.message : outcome.kind === "previewing" ? outcome.blocked : undefined;
  const before = findCondition(stack, "PullRequestsPreviewed");
  const isKnown = before?.status === "False" && before.message === message;
  return message === undefined || isKnown ? [] : [eventFor("StackPullRequestsFailed", message)];
}
