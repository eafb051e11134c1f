/**
 * When a failed preparation is retried. Kept in memory only: the first attempt of the next process comes at once.
 *
 * Due times are of the monotonic clock. A view has them as wall-clock times, relative to its own `now`, so that setting the
 * clock of the node neither hastens nor delays a retry.
 */
import { reconcileRequestAnnotation, type Workspace } from "@pko/api";
import type { Key, ReconcileContext } from "@pko/kube";

import type { Outcome } from "./outcome.ts";
import { longestRetryMs, retryAfterMs, type Plan } from "./plan.ts";
import { isPutAway, type WorkspaceView } from "./view.ts";

type Times = Pick<ReconcileContext, "now" | "monotonic">;

interface Retry {
  /** How often it has failed. */
  readonly failures: number;
  /** Infinity while an attempt is under way. */
  readonly dueAt: number;
  /** Of the spec that fails: another one begins anew. */
  readonly generation: number;
  /** The request for which it was last tried: another one is not kept waiting. */
  readonly request: string;
}

interface Passed {
  readonly view: WorkspaceView;
  readonly plan: Plan;
  readonly outcome: Outcome;
}

export class Retries {
  readonly #retries = new Map<Key, Retry>();

  /** The wall-clock time of the next attempt, for a view of this Workspace; undefined if none is due. */
  retryAt(key: Key, { metadata = {} }: Partial<Pick<Workspace, "metadata">>, times: Times): number | undefined {
    const retry = this.#retries.get(key);
    if (retry?.generation !== (metadata.generation ?? 0)) return undefined;
    const isRequested = Number.isFinite(retry.dueAt) && retry.request !== requestOf({ metadata });
    return isRequested ? 0 : times.now + (retry.dueAt - times.monotonic);
  }

  /** Records what a pass has come to. Returns the delay until the next attempt, if one is due. */
  schedule(key: Key, { view, plan, outcome }: Passed, { monotonic }: Pick<Times, "monotonic">): number | undefined {
    const { retryAt, workspace } = view;
    const generation = workspace.metadata.generation ?? 0;
    const known = retryAt === undefined ? undefined : this.#retries.get(key);
    const isNew = !known || isTrying(plan, view);
    const { failures } = known ?? { failures: 0 };
    const request = isNew ? requestOf(workspace) : known.request;
    if (outcome.kind === "failed") {
      if (known && isAwaited(view)) {
        this.#retries.set(key, { failures, dueAt: known.dueAt, generation, request });
        return known.dueAt - monotonic;
      }
      const afterMs = retryAfterMs(outcome.failure, failures);
      this.#retries.set(key, { failures: failures + 1, dueAt: monotonic + afterMs, generation, request });
      return afterMs;
    }
    if (isTrying(plan, view)) this.#retries.set(key, { failures, dueAt: Infinity, generation, request });
    // A Workspace that an earlier process scaled to zero is not retried at once: there may be many.
    else if (isPutAway(view) && retryAt === undefined) {
      this.#retries.set(key, { failures: 1, dueAt: monotonic + longestRetryMs, generation, request });
      return longestRetryMs;
    } else if (settled.has(outcome.kind)) this.#retries.delete(key);
    return undefined;
  }

  /** What it has failed for may have changed: the next attempt is due at once. */
  hasten(key: Key): void {
    const retry = this.#retries.get(key);
    if (retry) this.#retries.set(key, { ...retry, dueAt: 0 });
  }

  delete(key: Key): void {
    this.#retries.delete(key);
  }
}

const requestOf = ({ metadata }: Pick<Workspace, "metadata">): string =>
  metadata.annotations?.[reconcileRequestAnnotation] ?? "";

const isAwaited = ({ retryAt, now }: WorkspaceView): boolean =>
  retryAt !== undefined && retryAt > now && Number.isFinite(retryAt);

/** What has failed is tried again now: in its pod, or in a new one. */
const isTrying = ({ steps }: Plan, { retryAt, now }: WorkspaceView): boolean =>
  retryAt !== undefined &&
  retryAt <= now &&
  steps.some((step) => step.kind === "applyObjects" || (step.kind === "prepare" && step.again));

/** There is nothing to retry. */
const settled: ReadonlySet<Outcome["kind"]> = new Set<Outcome["kind"]>([
  "ready",
  "asleep",
  "refused",
  "blocked",
  "deleting",
]);
