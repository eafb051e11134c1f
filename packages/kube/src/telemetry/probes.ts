/**
 * Probes that tell the truth.
 *
 * Ready: every store is in step with the API server. A stalled watch makes a replica not ready, though it seems to work.
 * Alive: the event loop turns and no reconcile is stuck. A restart helps against nothing else, so nothing else fails it:
 * an API server that is away, or a lease that another holds, must not make the kubelet kill a process that waits well.
 */
import type { Clock } from "../clock.ts";
import type { Controller } from "../controller/controller.ts";
import type { KubeObject } from "../resource.ts";
import type { Reflector } from "../store/store.ts";

/** What is wrong; undefined when nothing is. */
type Check = () => string | undefined;
export type Checks = Readonly<Record<string, Check>>;

export interface ProbeReport {
  readonly ok: boolean;
  /** A line for each check. */
  readonly text: string;
}

export function probe(checks: Checks): ProbeReport {
  const results = Object.entries(checks).map(([name, check]) => ({ name, trouble: check() }));
  const lines = results.map(({ name, trouble }) =>
    trouble === undefined ? `[+] ${name}\n` : `[-] ${name}: ${trouble}\n`,
  );
  const ok = results.every(({ trouble }) => trouble === undefined);
  return { ok, text: `${lines.join("")}${ok ? "ok" : "not ok"}\n` };
}

export function reflectorCheck(reflector: Reflector<KubeObject>): Check {
  return () => {
    if (!reflector.store.hasSynced) return "not synced yet";
    return reflector.healthy ? undefined : "out of step with the API server";
  };
}

/** A reconcile has its own deadline; one that is still there long after it will never end. */
export function workerCheck(controller: Controller, wedgedAfterMs: number): Check {
  return () => {
    const ms = controller.longestRunningMs();
    return ms < wedgedAfterMs ? undefined : `a reconcile has been running for ${Math.round(ms / 1000)} s`;
  };
}

export interface Heartbeat {
  readonly check: Check;
  /** The longest delay of a beat since the last call: how long other work kept the event loop. */
  takeLagMs(): number;
  stop(): void;
}

const beatMs = 1000;

/** Timers that no longer fire. A loop that does not turn at all shows by itself: the probe gets no answer. */
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
