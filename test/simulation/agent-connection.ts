/** How a process of the operator reaches the agents: the interface of the real client, with the faults of a network. */
import { succeed, type CallError, type Reply } from "@pko/rpc";
import type { AgentClient, ConnectOptions } from "@pko/rpc/client";
import type { WatchUpdate } from "@pko/rpc/watch";

import type { SeededRandom } from "../../packages/kube/testing/seeded-random.ts";
import type { SimulatedAgent } from "./agent.ts";
import { trusts } from "./pki.ts";
import type { VirtualProcess } from "./virtual-time.ts";

export interface ReachableAgent {
  readonly agent: SimulatedAgent;
  /** As the kubelet mounted it. */
  readonly certificate: { readonly ca: string; readonly cert: string };
}

export interface AgentNetwork {
  readonly process: VirtualProcess;
  /** Delivers requests, also those of a process that has died since. */
  readonly wire: VirtualProcess;
  readonly random: SeededRandom;
  /** Undefined if nothing listens there. "silent": packets get lost. */
  readonly agentAt: (ip: string) => ReachableAgent | "silent" | undefined;
  /** Whether the response of a call gets lost, although the agent has processed it. */
  readonly losesResponse: () => boolean;
  /** How much later than usual a request arrives. */
  readonly delayMs: () => number;
}

type Answer<T> = Reply<T>;

const deadlineMs = 20_000;
const silenceMs = 15_000;

export function agentConnector(network: AgentNetwork): (options: ConnectOptions) => AgentClient {
  return (options) => new Connection(network, options);
}

class Connection implements AgentClient {
  readonly #network: AgentNetwork;
  readonly #options: ConnectOptions;

  constructor(network: AgentNetwork, options: ConnectOptions) {
    this.#network = network;
    this.#options = options;
  }

  info: AgentClient["info"] = async () => ({ ok: false, error: { code: "internal", message: "not simulated" } });

  prepare: AgentClient["prepare"] = (request, { signal, onPhase } = {}) =>
    this.#call(signal, Infinity, async (agent) => {
      let reported = 0;
      const report = (): void => {
        for (; reported < agent.phases.length; reported++) {
          const phase = agent.phases[reported];
          if (phase) this.#network.process.deliver(() => signal?.aborted || onPhase?.(phase));
        }
      };
      const unsubscribe = agent.subscribe(report);
      try {
        return await agent.prepare(request);
      } finally {
        unsubscribe();
      }
    });

  start: AgentClient["start"] = (request, { signal } = {}) =>
    this.#call(signal, deadlineMs, (agent) => agent.start(request));

  cancel: AgentClient["cancel"] = ({ runId }, { signal } = {}) =>
    this.#call(signal, deadlineMs, (agent) => agent.cancel(runId));

  outputs: AgentClient["outputs"] = ({ runId }, { signal } = {}) =>
    this.#call(signal, silenceMs, (agent) => agent.outputs(runId));

  plan: AgentClient["plan"] = ({ runId }, { signal } = {}) =>
    this.#call(signal, silenceMs, (agent) => agent.plan(runId));

  record: AgentClient["record"] = ({ runId }, { signal } = {}) =>
    this.#call(signal, deadlineMs, (agent) => agent.record(runId));

  async *watch(
    { runId, fromSeq }: { runId: string; fromSeq: number },
    { signal }: { signal?: AbortSignal } = {},
  ): AsyncGenerator<WatchUpdate> {
    let next = fromSeq;
    for (let failures = 0; ;) {
      const found = await this.#call(signal, silenceMs, (agent) => succeed(agent));
      if (signal?.aborted) return;
      if (found.ok) {
        const agent = found.value;
        const run = agent.find(runId);
        if (!run) {
          yield { type: "lost", error: { code: "notFound", message: "there is no such run" } };
          return;
        }
        failures = 0;
        const hasGrown = next <= run.events.length;
        for (; next <= run.events.length; next++) {
          const event = run.events[next - 1];
          if (event) yield { type: "event", ...event };
        }
        if (hasGrown) yield { type: "progress", seq: run.events.length, progress: run.progress };
        if (run.result) {
          yield { type: "result", seq: run.events.length, result: run.result };
          return;
        }
        await this.#nextChange(agent, signal);
        continue;
      }
      failures++;
      if (found.error.code === "untrusted") {
        yield { type: "lost", error: found.error };
        return;
      }
      yield { type: "reconnecting", attempt: failures, error: found.error };
      await this.#network.process.pause(Math.min(10_000, 250 * 2 ** failures));
    }
  }

  /** At least as often as there are heartbeats. */
  async #nextChange(agent: SimulatedAgent, signal: AbortSignal | undefined): Promise<void> {
    const { process } = this.#network;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        unsubscribe();
        cancel();
        signal?.removeEventListener("abort", end);
        process.deliver(resolve);
      };
      const unsubscribe = agent.subscribe(end);
      const cancel = process.after(5000, end);
      signal?.addEventListener("abort", end, { once: true });
    });
  }

  #call<T>(
    signal: AbortSignal | undefined,
    limitMs: number,
    work: (agent: SimulatedAgent) => Promise<Reply<T>> | Reply<T>,
  ): Promise<Answer<T>> {
    const { process, wire, random, agentAt, losesResponse, delayMs } = this.#network;
    return new Promise((resolve) => {
      let isSettled = false;
      const settle = (reply: Answer<T>): void => {
        if (isSettled) return;
        isSettled = true;
        signal?.removeEventListener("abort", onAbort);
        cancelDeadline();
        process.deliver(() => resolve(reply));
      };
      const error = (code: CallError["code"], message: string): Answer<T> => ({ ok: false, error: { code, message } });
      const onAbort = (): void => settle(error("aborted", "the operator aborted the call"));
      signal?.addEventListener("abort", onAbort, { once: true });
      const limit = Math.min(limitMs, 600_000);
      const cancelDeadline = process.after(limit, () => settle(error("deadline", "the agent did not respond in time")));
      if (signal?.aborted) return onAbort();
      wire.after(latencyMs(random) + delayMs(), () => {
        const target = agentAt(this.#options.address.host);
        if (target === "silent")
          return void process.after(silenceMs, () => settle(error("unreachable", "no response")));
        if (!target) return settle(error("unreachable", "connection refused"));
        const own = this.#options.credentials();
        const { serverName } = this.#options.address;
        if (!trusts(own, target.certificate, serverName) || !trusts(target.certificate, own, "operator")) {
          if (!process.isDead) this.#options.onUntrusted?.();
          return settle(error("untrusted", "the certificate is not trusted"));
        }
        const isLost = losesResponse();
        void (async (): Promise<void> => {
          const reply = await work(target.agent);
          const arrival = isLost ? error("unreachable", "the connection broke") : reply;
          process.after(latencyMs(random), () =>
            settle(agentAt(this.#options.address.host) === "silent" ? error("unreachable", "no response") : arrival),
          );
        })();
      });
    });
  }
}

const latencyMs = (random: SeededRandom): number => 0.3 + random.next() ** 4 * 30;
