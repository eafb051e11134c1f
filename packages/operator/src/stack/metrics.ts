/** The gauges of the Go operator, with the same series, and histograms of durations. */
import type { Stack, StackReason } from "@pko/api";
import type { Registry, Store } from "@pko/kube";

import { parseTimestamp } from "../shared/parse-timestamp.ts";
import { findCondition } from "../shared/conditions.ts";
import { approvalPolicyOf } from "../shared/approvals.ts";
import type { ApprovalNews } from "./history/approval.ts";
import type { DriftRecord } from "./history/drift.ts";
import type { Suspension } from "../shared/suspension.ts";
import type { Result } from "./history/result.ts";
import { suspendedBy, withdrawnFailure } from "./view.ts";

export interface StackMetrics {
  recordResult(stack: Stack, result: Result): void;
  /** Of a check. */
  recordDrift(record: DriftRecord): void;
  recordApprovals(news: readonly ApprovalNews[]): void;
}

interface MeteredWorld {
  readonly stacks: Pick<Store<Stack>, "list">;
  readonly suspension: Pick<Suspension, "isOn">;
}

const seconds = [1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200];

export function stackMetrics(registry: Registry, world: MeteredWorld): StackMetrics {
  exposeCounts(registry, world);
  const first = registry.histogram({
    name: "stack_time_to_first_update_seconds",
    help: "Time from a Stack's creation to the end of its first update, by result.",
    labels: ["result"],
    buckets: seconds,
  });
  const duration = registry.histogram({
    name: "stack_update_duration_seconds",
    help: "How long updates ran, by type and result.",
    labels: ["type", "result"],
    buckets: seconds,
  });
  const queue = registry.histogram({
    name: "stack_update_queue_seconds",
    help: "Time from an Update's creation to the beginning of its run, by type and result.",
    labels: ["type", "result"],
    buckets: seconds,
  });
  const failures = registry.counter({
    name: "stack_update_failures_total",
    help: "Updates that failed, by type and class, such as timedOut or programError.",
    labels: ["type", "class"],
  });
  const checks = registry.counter({
    name: "stack_drift_checks_total",
    help: "Checks for drift, by result: drifted, clean or failed.",
    labels: ["result"],
  });
  const approvals = registry.counter({
    name: "stack_approval_requests_total",
    help: "Plans that were approved or rejected, that expired, or that were superseded, by result.",
    labels: ["result"],
  });
  return {
    recordDrift({ verdict }) {
      checks.increment({ result: checkResults[verdict.reason] });
    },
    recordResult(stack, { update, lastUpdate }) {
      const result = lastUpdate.state ?? "failed";
      const { type, startedAt, endedAt, createdAt } = update;
      const { failure = "other" } = lastUpdate;
      if (result === "failed" && failure !== withdrawnFailure) failures.increment({ type, class: failure });
      if (startedAt !== undefined && endedAt !== undefined) {
        duration.observe({ type, result }, Math.max(0, endedAt - startedAt) / 1000);
        queue.observe({ type, result }, Math.max(0, startedAt - createdAt) / 1000);
      }
      const stackCreatedAt = parseTimestamp(stack.metadata.creationTimestamp);
      if (!stack.status?.lastUpdate && stackCreatedAt !== undefined && endedAt !== undefined) {
        first.observe({ result }, Math.max(0, endedAt - stackCreatedAt) / 1000);
      }
    },
    recordApprovals(news) {
      for (const { kind } of news) if (kind !== "awaiting") approvals.increment({ result: kind });
    },
  };
}

const checkResults: Readonly<Record<StackReason<"Drifted">, string>> = {
  DriftDetected: "drifted",
  NoDrift: "clean",
  DriftCheckFailed: "failed",
};

function exposeCounts(registry: Registry, { stacks, suspension }: MeteredWorld): void {
  const active = registry.gauge({ name: "stacks_active", help: "Stacks that exist." });
  // Without a limit: an alert must not miss a Stack.
  const each = { labels: ["namespace", "name"], maxSeries: Infinity } as const;
  const failing = registry.gauge({ name: "stacks_failing", help: "1 for a Stack whose last update failed.", ...each });
  const reconciling = registry.gauge({
    name: "stacks_reconciling",
    help: "1 for a Stack that is being worked on.",
    ...each,
  });
  const drifted = registry.gauge({
    name: "stacks_drifted",
    help: "1 for a Stack whose resources have drifted.",
    ...each,
  });
  const suspended = registry.gauge({
    name: "stacks_suspended",
    help: "1 for a Stack that is suspended, by its spec or with the whole operator.",
    ...each,
  });
  const awaiting = registry.gauge({
    name: "stacks_awaiting_approval",
    help: "1 for a Stack whose changes wait for an approval.",
    ...each,
  });
  registry.onCollect(() => {
    const all = stacks.list();
    active.set({}, all.length);
    failing.clear();
    reconciling.clear();
    drifted.clear();
    suspended.clear();
    awaiting.clear();
    for (const stack of all) {
      const { namespace = "", name = "" } = stack.metadata;
      const { state } = stack.status?.lastUpdate ?? {};
      // A Stack without a finished update has no series.
      if (state) failing.set({ namespace, name }, state === "failed" ? 1 : 0);
      reconciling.set({ namespace, name }, isReconciling(stack) ? 1 : 0);
      const drift = findCondition(stack, "Drifted");
      // A Stack that was never checked has no series.
      if (drift) drifted.set({ namespace, name }, drift.status === "True" ? 1 : 0);
      const by = suspendedBy({ stack, operatorSuspended: suspension.isOn });
      suspended.set({ namespace, name }, by.length > 0 ? 1 : 0);
      // Only Stacks that require approvals have a series.
      if (approvalPolicyOf(stack)) awaiting.set({ namespace, name }, isAwaitingApproval(stack) ? 1 : 0);
    }
  });
}

const isReconciling = ({ status }: Stack): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === "Reconciling" && is === "True") ?? false;

const isAwaitingApproval = ({ status }: Stack): boolean =>
  status?.conditions?.some(({ reason }) => reason === "AwaitingApproval") ?? false;
