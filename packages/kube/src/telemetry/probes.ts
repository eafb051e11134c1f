/**
 * Readiness and liveness probes.
 *
 * Ready: every store is in sync with the API server. A stalled watch makes a replica not ready, even if it seems to work.
 * Alive: the event loop runs and no reconcile is stuck. A restart helps with nothing else, so nothing else fails the probe:
 * if the API server is down or another replica holds the lease, the kubelet must not kill a process that is waiting.
 */
import type { Clock } from "../clock.ts";
import type { Controller } from "../controller/controller.ts";
import type { KubeObject } from "../resource.ts";
import type { Reflector } from "../store/store.ts";

/** Describes the problem; undefined if there is none. */
type Check = () => string | undefined;
export type Checks = Readonly<Record<string, Check>>;

export interface ProbeReport {
  readonly ok: boolean;
  /** One line for each check. */
  readonly text: string;
}

export function probe(checks: Checks): ProbeReport {
  const results = Object.entries(checks).map(([name, check]) => ({ name, problem: check() }));
  const lines = results.map(({ name, problem }) =>
    problem === undefined ? `[+] ${name}\n` : `[-] ${name}: ${problem}\n`,
  );
  const ok = results.every(({ problem }) => problem === undefined);
  return { ok, text: `${lines.join("")}${ok ? "ok" : "not ok"}\n` };
}

export function reflectorCheck(reflector: Reflector<KubeObject>): Check {
  return () => {
    if (!reflector.store.hasSynced) return "not synced yet";
    return reflector.healthy ? undefined : "out of sync with the API server";
  };
}

/** A reconcile has a deadline; one that still runs long after it will never end. */
export function workerCheck(controller: Controller, wedgedAfterMs: number): Check {
  return () => {
    const ms = controller.longestRunningMs();
    return ms < wedgedAfterMs ? undefined : `a reconcile has been running for ${Math.round(ms / 1000)} s`;
  };
}

export interface Heartbeat {
  readonly check: Check;
  /** The longest delay of a beat since the last call: how long other work blocked the event loop. */
  takeLagMs(): number;
  stop(): void;
}

const beatMs = 1000;

/** Detects timers that no longer fire. A completely blocked event loop does not respond to the probe at all. */
export function heartbeat(clock: Clock, stuckAfterMs: number): Heartbeat {
  let last = clock.monotonic();
  let worst = 0;
  const beat = (): void => {
    worst = Math.max(worst, clock.monotonic() - last - beatMs);
    last = clock.monotonic();
    cancel = clock.after(beatMs, beat);
  };
  let cancel = clock.after(beatMs, beat);
  return {
    check() {
      const late = clock.monotonic() - last - beatMs;
      return late < stuckAfterMs ? undefined : `timers are ${Math.round(late / 1000)} s late`;
    },
    takeLagMs() {
      const taken = worst;
      worst = 0;
      return taken;
    },
    stop: () => cancel(),
  };
}
