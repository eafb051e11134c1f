/** The metrics of a work queue, with client-go's names. */
import type { Registry } from "../telemetry/metrics.ts";

export interface QueueMetrics {
  added(): void;
  retried(): void;
  started(queuedMs: number): void;
  ended(workedMs: number): void;
  /** Stops updating the gauges; a stopped queue shows zeros. */
  close(): void;
}

interface QueueGauges {
  depth(): number;
  /** Of the key that has been ready for the longest time; 0 if none waits for a worker. */
  oldestMs(): number;
  runningMs(): number[];
}

const buckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1000];

export function queueMetrics(registry: Registry, name: string, gauges: QueueGauges): QueueMetrics {
  const labels = ["name", "controller"] as const;
  const own = { name, controller: name };
  const counter = (name: string, help: string) => registry.counter({ name: `workqueue_${name}`, help, labels });
  const gauge = (name: string, help: string) => registry.gauge({ name: `workqueue_${name}`, help, labels });
  const histogram = (name: string, help: string) =>
    registry.histogram({ name: `workqueue_${name}`, help, labels, buckets });

  const adds = counter("adds_total", "Keys that were queued.");
  const retries = counter("retries_total", "Keys that were retried after a failure.");
  const queued = histogram("queue_duration_seconds", "How long keys were queued before a worker took them.");
  const worked = histogram("work_duration_seconds", "How long it took to process a key.");
  const depth = gauge("depth", "Keys in the queue.");
  const oldest = gauge("oldest_age_seconds", "How long the oldest key in the queue has been waiting for a worker.");
  const unfinished = gauge("unfinished_work_seconds", "The sum of the times that the running keys have been running.");
  const longest = gauge("longest_running_processor_seconds", "How long the longest-running key has been running.");

  const collect = (): void => {
    const seconds = gauges.runningMs().map((ms) => ms / 1000);
    depth.set(own, gauges.depth());
    oldest.set(own, gauges.oldestMs() / 1000);
    unfinished.set(
      own,
      seconds.reduce((sum, each) => sum + each, 0),
    );
    longest.set(own, Math.max(0, ...seconds));
  };
  const stopCollecting = registry.onCollect(collect);
  adds.increment(own, 0);
  retries.increment(own, 0);

  return {
    added: () => adds.increment(own),
    retried: () => retries.increment(own),
    started: (ms) => queued.observe(own, ms / 1000),
    ended: (ms) => worked.observe(own, ms / 1000),
    close() {
      collect();
      stopCollecting();
    },
  };
}
