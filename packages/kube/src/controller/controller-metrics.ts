/** The metrics of a controller, with controller-runtime's names where it has one. */
import type { Registry } from "../telemetry/metrics.ts";
import type { Result } from "./queue.ts";

type Outcome = Result["kind"] | "error";

export interface ControllerMetrics {
  ended(outcome: Outcome, ms: number): void;
  overdue(): void;
}

interface ControllerGauges {
  readonly concurrency: number;
  running(): number;
}

const resultNames: Readonly<Record<Outcome, string>> = {
  done: "success",
  requeue: "requeue_after",
  retry: "requeue",
  error: "error",
};

/** The buckets of controller-runtime, so that its dashboards stay correct. */
const buckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];

export function controllerMetrics(registry: Registry, controller: string, gauges: ControllerGauges): ControllerMetrics {
  const name = (name: string): string => `controller_runtime_${name}`;
  const labels = ["controller"] as const;
  const total = registry.counter({
    name: name("reconcile_total"),
    help: "Reconciles by result.",
    labels: ["controller", "result"],
  });
  const errors = registry.counter({ name: name("reconcile_errors_total"), help: "Reconciles that threw.", labels });
  const timeouts = registry.counter({
    name: name("reconcile_timeouts_total"),
    help: "Reconcile deadlines that were missed.",
    labels,
  });
  const time = registry.histogram({
    name: name("reconcile_time_seconds"),
    help: "Duration of reconciles.",
    labels,
    buckets,
  });
  const active = registry.gauge({ name: name("active_workers"), help: "Reconciles that are running now.", labels });
  const maximum = registry.gauge({
    name: name("max_concurrent_reconciles"),
    help: "The maximum number of reconciles that run at the same time.",
    labels,
  });
  for (const result of Object.values(resultNames)) total.increment({ controller, result }, 0);
  errors.increment({ controller }, 0);
  timeouts.increment({ controller }, 0);
  maximum.set({ controller }, gauges.concurrency);
  registry.onCollect(() => active.set({ controller }, gauges.running()));

  return {
    ended(outcome, ms) {
      total.increment({ controller, result: resultNames[outcome] });
      if (outcome === "error") errors.increment({ controller });
      time.observe({ controller }, ms / 1000);
    },
    overdue: () => timeouts.increment({ controller }),
  };
}
