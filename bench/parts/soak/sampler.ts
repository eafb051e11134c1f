/** Measures the operator, and the agent that is never restarted. */
import { waitFor } from "@pko/testkit";

import { processHandles, processUsage } from "../usage.ts";
import type { Sample } from "./gates.ts";
import { steadyStack } from "./loads.ts";
import type { Scene } from "./scene.ts";

const sampleMs = 2000;
const restTimeoutMs = 120_000;

export class Sampler {
  readonly #scene: Scene;
  readonly #startedAt = performance.now();
  readonly samples: Sample[] = [];

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  get seconds(): number {
    return (performance.now() - this.#startedAt) / 1000;
  }

  async run(end: AbortSignal): Promise<void> {
    while (!end.aborted) {
      this.samples.push({ seconds: this.seconds, values: await this.#measure() });
      await Bun.sleep(sampleMs);
    }
  }

  /** What the operator has open while nothing is queued, running or waiting. Undefined if that does not come. */
  async atRest(): Promise<Readonly<Record<string, number>>> {
    const { operator } = this.#scene;
    const busy = ["workqueue_depth", "controller_runtime_active_workers", "update_slots_in_use"];
    const isAtRest = async (): Promise<boolean> => {
      const metrics = await operator.metrics();
      return metrics.size > 0 && busy.every((name) => (metrics.get(name) ?? 0) === 0) && this.#agentChildren() === 0;
    };
    await waitFor(isAtRest, { timeoutMs: restTimeoutMs, what: "the operator and the agents to be at rest" });
    return await this.#measure();
  }

  async #measure(): Promise<Record<string, number>> {
    const { operator, kubelet } = this.#scene;
    const metrics = await operator.metrics();
    const { files, sockets, threads } = processHandles(operator.pid);
    const agent = kubelet.agentPid(steadyStack);
    const [queued, objects, heap] = ["workqueue_depth", "reflector_objects", "process_heap_bytes"].map((name) =>
      metrics.get(name),
    );
    return {
      resident: operator.usage().residentMb,
      files,
      sockets,
      threads,
      ...(queued !== undefined && { queued }),
      ...(objects !== undefined && { objects }),
      ...(heap !== undefined && { heap: heap / 1e6 }),
      ...(agent !== undefined && {
        agentResident: processUsage(agent).residentMb,
        agentFiles: processHandles(agent).files,
      }),
    };
  }

  #agentChildren(): number {
    const agent = this.#scene.kubelet.agentPid(steadyStack);
    return agent === undefined ? 0 : processHandles(agent).children;
  }
}
