/** Metrics of polling Git repositories. */
import type { Registry } from "@pko/kube";

import type { Transport } from "./git-lister.ts";
import type { GitRefs } from "./git-remote.ts";

export interface PollMetrics {
  recordPoll(poll: PollRecord): void;
}

interface PollRecord {
  readonly host: string;
  readonly transport: Transport;
  readonly result: GitRefs;
  readonly seconds: number;
  readonly queuedSeconds: number;
}

/** What is read when the metrics are exposed. */
export interface PollGauges {
  readonly running: Readonly<Record<Transport, number>>;
  readonly waiting: number;
  /** Of the poll that has waited for the longest time. */
  readonly oldestSeconds: number;
}

/** Users choose the hosts: further ones share a label. */
const maxHosts = 100;
const otherHosts = "other";
const buckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 60];

export function pollMetrics(registry: Registry, read: () => PollGauges): PollMetrics {
  exposeGauges(registry, read);
  const polls = registry.counter({
    name: "git_polls_total",
    help: "Polls of Git repositories by host, and by result: listed or the problem.",
    labels: ["host", "result"],
  });
  const duration = registry.histogram({
    name: "git_poll_duration_seconds",
    help: "How long polls of Git repositories took, by transport: http, or git for a git process.",
    labels: ["transport"],
    buckets,
  });
  const queued = registry.histogram({
    name: "git_poll_queue_seconds",
    help: "How long polls of Git repositories that were due waited for a slot.",
    buckets,
  });
  const hosts = new Set<string>();
  const label = (host: string): string => {
    if (hosts.size < maxHosts) hosts.add(host);
    return hosts.has(host) ? host : otherHosts;
  };
  return {
    recordPoll({ host, transport, result, seconds, queuedSeconds }) {
      polls.increment({ host: label(host), result: result.kind === "listed" ? result.kind : result.problem });
      duration.observe({ transport }, seconds);
      queued.observe({}, queuedSeconds);
    },
  };
}

function exposeGauges(registry: Registry, read: () => PollGauges): void {
  const running = registry.gauge({
    name: "git_polls_in_flight",
    help: "Polls of Git repositories that are running, by transport.",
    labels: ["transport"],
  });
  const waiting = registry.gauge({
    name: "git_polls_waiting",
    help: "Polls of Git repositories that are due and wait for a slot.",
  });
  const oldest = registry.gauge({
    name: "git_poll_queue_age_seconds",
    help: "How long the oldest waiting poll of a Git repository has waited.",
  });
  registry.onCollect(() => {
    const gauges = read();
    running.set({ transport: "http" }, gauges.running.http);
    running.set({ transport: "git" }, gauges.running.git);
    waiting.set({}, gauges.waiting);
    oldest.set({}, gauges.oldestSeconds);
  });
}
