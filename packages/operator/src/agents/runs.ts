/** The runs that the operator follows, each independently: no worker waits for one. */
import { silentLogger, systemClock, type Logger } from "@pko/kube";
import type { NumberedEvent } from "@pko/records";
import type { StartRequest } from "@pko/rpc";

import type { AgentPod, FollowedPod, Run, RunPreparations, Runs, Stoppable } from "./agents.ts";
import type { DialOptions } from "./dial.ts";
import { FollowedRun } from "./followed-run.ts";

interface RunsOptions extends DialOptions {
  /** Called when the state of a run has changed; for progress, at most once per `progressMs`. */
  readonly wake: (runId: string) => void;
  readonly progressMs?: number;
  /** Called for each event of a run, for traces. With it, the events of a run that was started before are read again. */
  readonly onEvent?: (runId: string, event: NumberedEvent) => void;
  readonly preparations: RunPreparations;
}

export function runs(options: RunsOptions): Runs & Stoppable {
  return new FollowedRuns(options);
}

class FollowedRuns implements Runs, Stoppable {
  readonly #options: RunsOptions;
  readonly #log: Logger;
  readonly #entries = new Map<string, FollowedRun>();

  constructor(options: RunsOptions) {
    this.#options = options;
    this.#log = (options.log ?? silentLogger).child({ logger: "runs" });
  }

  find({ uid, ip = "" }: FollowedPod, runId: string): Run | undefined {
    const known = this.#entries.get(runId);
    if (known?.podUid !== uid) return undefined;
    const hasMoved = ip !== "" && known.podIp !== ip && known.state.state !== "finished";
    return hasMoved ? undefined : known.state;
  }

  ensure(pod: AgentPod, request: StartRequest): Run {
    return this.#entryFor(pod, request.runId, request).state;
  }

  attach(pod: AgentPod, runId: string): Run {
    const entry = this.#entryFor(pod, runId);
    entry.preventStart();
    return entry.state;
  }

  cancel(pod: AgentPod, runId: string): void {
    const entry = this.#entryFor(pod, runId);
    entry.preventStart();
    entry.cancel();
  }

  forget(runId: string): void {
    this.#entries.get(runId)?.end();
    this.#entries.delete(runId);
  }

  async stop(): Promise<void> {
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    for (const entry of entries) entry.end();
    await Promise.all(entries.map((entry) => entry.ended));
  }

  #entryFor(pod: AgentPod, runId: string, request?: StartRequest): FollowedRun {
    const known = this.#entries.get(runId);
    if (known?.isAt(pod)) return known;
    known?.end();
    // The node of the pod has restarted, and may have lost the agent's record of a run that was started.
    const mustNotStart = known?.podUid === pod.uid && !known.mayStart;
    const { onEvent, preparations, ...options } = this.#options;
    const logged = { namespace: pod.workspace.namespace, workspace: pod.workspace.name, run: runId };
    const entry = new FollowedRun(pod, request && !mustNotStart ? request : { runId }, {
      ...options,
      ...(onEvent && { onEvent: (event) => onEvent(runId, event) }),
      clock: this.#options.clock ?? systemClock,
      wake: () => this.#options.wake(runId),
      preparation: () => preparations.preparationOf(pod),
      unprepared: () => preparations.renew(pod, runId),
      failed: (error) => this.#log.error("following a run failed unexpectedly", { ...logged, error }),
    });
    this.#entries.set(runId, entry);
    return entry;
  }
}
