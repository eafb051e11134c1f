/** The reference's gauges, and how long things take. */
import type { Stack } from "@pko/api";
import type { Registry, Store } from "@pko/kube";

import type { Noted } from "./result.ts";
import { timeOf } from "./trigger.ts";

export interface StackMetrics {
  noted(stack: Stack, noted: Noted): void;
  close(): void;
}

const seconds = [1, 2.5, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200];

export function stackMetrics(registry: Registry, stacks: Store<Stack>): StackMetrics {
  const close = exposeCounts(registry, stacks);
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
  return {
    noted(stack, { update, lastUpdate }) {
      const result = lastUpdate.state ?? "failed";
      const { type, startedAt, endedAt, createdAt } = update;
      if (startedAt !== undefined && endedAt !== undefined) {
        duration.observe({ type, result }, Math.max(0, endedAt - startedAt) / 1000);
        queue.observe({ type, result }, Math.max(0, startedAt - createdAt) / 1000);
      }
      const bornAt = timeOf(stack.metadata.creationTimestamp);
      if (!stack.status?.lastUpdate && bornAt !== undefined && endedAt !== undefined) {
        first.observe({ result }, Math.max(0, endedAt - bornAt) / 1000);
      }
    },
    close,
  };
}

function exposeCounts(registry: Registry, stacks: Store<Stack>): () => void {
  const active = registry.gauge({ name: "stacks_active", help: "Stacks that exist." });
  const labels = ["namespace"] as const;
  const failing = registry.gauge({ name: "stacks_failing", help: "Stacks whose last update failed.", labels });
  const reconciling = registry.gauge({ name: "stacks_reconciling", help: "Stacks that are being worked on.", labels });
  return registry.onCollect(() => {
    const all = stacks.list();
    active.set({}, all.length);
    failing.clear();
    reconciling.clear();
    for (const [namespace, members] of Map.groupBy(all, ({ metadata }) => metadata.namespace ?? "")) {
      failing.set({ namespace }, members.filter(({ status }) => status?.lastUpdate?.state === "failed").length);
      reconciling.set({ namespace }, members.filter(isReconciling).length);
    }
  });
}

const isReconciling = ({ status }: Stack): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === "Reconciling" && is === "True") ?? false;
