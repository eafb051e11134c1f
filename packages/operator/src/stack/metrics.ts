/** The gauges of Stacks, histograms of durations, and counters of what has happened. */
import type { Stack, StackReason } from "@pko/api";
import type { Registry } from "@pko/kube";

import { parseTimestamp } from "../shared/parse-timestamp.ts";
import { exposeStackGauges, type MeteredWorld } from "./gauges.ts";
import type { ApprovalNews } from "./history/approval.ts";
import type { DriftRecord } from "./history/drift.ts";
import type { Result } from "./history/result.ts";
import { withdrawnFailure } from "./view.ts";

export interface StackMetrics {
  recordResult(stack: Stack, result: Result): void;
  /** Of a check. */
  recordDrift(record: DriftRecord): void;
  recordApprovals(news: readonly ApprovalNews[]): void;
}

const seconds = [1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200];

/** `traces` connects durations to traces; absent if these are off. */
export function stackMetrics(
  registry: Registry,
  world: MeteredWorld,
  traces?: { traceId(uid: string): string | undefined },
): StackMetrics {
  exposeStackGauges(registry, world);
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
    help: "Drift checks, by result: drifted, clean or failed.",
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
        const ms = Math.max(0, endedAt - startedAt);
        duration.observe({ type, result }, ms / 1000, { traceId: traces?.traceId(update.uid) });
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
