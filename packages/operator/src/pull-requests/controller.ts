/** The controller of pull request previews: a child Stack for each open pull request of a Stack that selects it. */
import { fieldManagers, reconcileRequestAnnotation, stackKind, type Stack, type Update } from "@pko/api";
import {
  controller,
  keyOf,
  metricsRegistry,
  reconciler,
  silentLogger,
  systemClock,
  watching,
  type Change,
  type Client,
  type Clock,
  type Controller,
  type EventRecorder,
  type Key,
  type Logger,
  type Reconcile,
  type Reflector,
  type Registry,
} from "@pko/kube";

import type { ReferencePoller } from "../inputs/reference-poller.ts";
import { stacks } from "../kinds.ts";
import type { Pushes } from "../shared/channels/pushes.ts";
import { neverSuspended, type Suspension } from "../shared/channels/suspension.ts";
import { stackLogKeys } from "../shared/log-keys.ts";
import { findCondition } from "../shared/objects/conditions.ts";
import { gitLister } from "../sources/git-lister.ts";
import { pullRequestEvents } from "./events.ts";
import { forgeLister, statusReporter, type ForgeListerSettings } from "./forge.ts";
import { headComparisons, type HeadComparisons } from "./head-comparisons.ts";
import { exposePreviews } from "./metrics.ts";
import { mentionsPullRequests, observePullRequests, type PullRequestsWorld } from "./observe.ts";
import type { Outcome } from "./outcome.ts";
import { performPullRequests } from "./perform.ts";
import { pullRequestPoller, type PullRequestPoller } from "./poller.ts";
import { planPullRequests } from "./rules/index.ts";
import { pullRequestsStatus } from "./status.ts";
import type { Step } from "./steps.ts";
import type { PullRequestsView } from "./view.ts";

export interface PullRequestControllerOptions {
  /** Must be fenced. */
  readonly client: Client;
  readonly events: EventRecorder;
  /** With `previewIndexers`. */
  readonly reflector: Reflector<Stack>;
  /** With `updateIndexers`. */
  readonly updates: Reflector<Update>;
  readonly git: ForgeListerSettings;
  /** Stopped by the caller. */
  readonly references: ReferencePoller;
  /** What webhooks report; nothing if absent. */
  readonly pushes?: Pushes;
  /** Never suspended if absent. */
  readonly suspension?: Suspension;
  readonly log?: Logger;
  readonly metrics?: Registry;
  readonly clock?: Clock;
}

/**
 * The longest pass reports three previews that ended without a result. Each takes up to two requests of 15 s; before that, the key of a
 * GitHub App may have to be exchanged, in 20 s.
 */
const deadlineMs = 120_000;

export function pullRequestController(options: PullRequestControllerOptions): Controller {
  const { client, reflector, updates, git, suspension = neverSuspended } = options;
  const { log = silentLogger, metrics = metricsRegistry(), clock = systemClock } = options;
  const wake = (key: Key): void => self.enqueue(key);
  const poller = pullRequestPoller({ list: forgeLister(git), wake, clock, log, metrics });
  const comparisons = headComparisons({ comparer: gitLister(git, clock), wake, clock, log });
  const { store } = reflector;
  exposePreviews(metrics, store);
  const world = { client, stacks: store, updates: updates.store, suspension, poller, comparisons };
  const self: Controller = controller({
    name: "pull-request-controller",
    reflector,
    predicate: isRelevant,
    owns: [{ reflector, ownerKind: stackKind }],
    concurrency: 4,
    deadlineMs,
    log,
    logKeys: stackLogKeys,
    metrics,
    clock,
    // Changes of Updates reach it as changes of the previews that own them.
    watches: [watching({ reflector: updates, map: () => [] })],
    reconcile: pullRequestReconciler(world, { ...options, poller, comparisons, wake }),
    whileRunning() {
      const unfollow = suspension.follow(() => {
        for (const stack of store.list()) if (mentionsPullRequests(stack)) wake(keyOf(stack));
      });
      const unfollowPushes = options.pushes?.follow((push) => poller.pushed(push));
      return () => {
        unfollow();
        unfollowPushes?.();
        poller.stop();
        comparisons.stop();
      };
    },
  });
  return self;
}

interface Channels extends Pick<PullRequestControllerOptions, "events" | "references" | "git"> {
  readonly poller: PullRequestPoller;
  readonly comparisons: HeadComparisons;
  readonly wake: (key: Key) => void;
}

function pullRequestReconciler(world: PullRequestsWorld, channels: Channels): Reconcile {
  const { client } = world;
  const { events, references, poller, comparisons, wake, git } = channels;
  const tools = { client, report: statusReporter(git) };
  return reconciler<Stack, PullRequestsView, Step, Outcome, never>({
    resource: stacks,
    client,
    events,
    fieldManager: fieldManagers.pullRequestStatus,
    observe: (key, moment) => observePullRequests(world, key, moment),
    objectIn: ({ stack }) => stack,
    plan: planPullRequests,
    perform: (step, context) => performPullRequests(tools, step, context),
    status: pullRequestsStatus,
    eventsOf: pullRequestEvents,
    publish(key, { view }) {
      const { followed, secrets, wantedHeads } = view;
      if (followed) poller.follow(key, followed.wanted, followed.seen);
      else poller.forget(key);
      if (wantedHeads === "none") comparisons.forget(key);
      else if (wantedHeads !== "unchanged") comparisons.follow(key, wantedHeads);
      references.follow(referenceUser(key), { objects: secrets, wake: () => wake(key) });
    },
    cleanUp(key) {
      poller.forget(key);
      comparisons.forget(key);
      references.forget(referenceUser(key));
    },
  });
}

const referenceUser = (key: Key): string => `pull-requests/${key}`;

/** While a Stack runs, its status changes every second, which concerns nobody here. */
function isRelevant({ before, after }: Change<Stack>): boolean {
  if (![before, after].some((stack) => stack && mentionsPullRequests(stack))) return false;
  return !before || !after || JSON.stringify(relevantOf(before)) !== JSON.stringify(relevantOf(after));
}

const relevantOf = (stack: Stack): unknown => [
  stack.metadata.uid,
  stack.metadata.generation,
  stack.metadata.deletionTimestamp,
  stack.metadata.annotations?.[reconcileRequestAnnotation],
  stack.status?.observedGeneration === undefined,
  stack.status?.pullRequests,
  findCondition(stack, "PullRequestsPreviewed"),
];
