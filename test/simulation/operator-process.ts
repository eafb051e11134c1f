/** A process of the real operator in a simulated cluster. It can crash, freeze, lose its network, and have a wrong clock. */
import { logger, staticCredentials, type Alarm, type Logger } from "@pko/kube";

import { seededRandom, type SeededRandom } from "../../packages/kube/testing/seeded-random.ts";
import { operator } from "../../packages/operator/src/operator.ts";
import { parseOptions } from "../../packages/operator/src/options.ts";
import type { ListRefs } from "../../packages/operator/src/sources/git-remote.ts";
import { agentConnector } from "./agent-connection.ts";
import { ApiConnection, type RequestFault } from "./api/network.ts";
import type { ApiReply, ApiRequest } from "./api/server.ts";
import type { Change } from "./api/storage.ts";
import type { Cluster } from "./cluster.ts";
import { simulatedPki } from "./pki.ts";
import type { VirtualProcess, VirtualTime } from "./virtual-time.ts";

export interface OperatorProcessOptions {
  readonly name: string;
  readonly cluster: Cluster;
  readonly time: VirtualTime;
  readonly random: SeededRandom;
  readonly newUid: () => string;
  /** Whether a kernel timer ends the process if it is frozen for too long. */
  readonly hasAlarm: boolean;
  /** Further flags. */
  readonly flags: readonly string[];
  readonly listRefs: ListRefs;
  readonly faultOf: (request: ApiRequest) => RequestFault | undefined;
  readonly losesEvent: (change: Change) => boolean;
  readonly watchLagMs: () => number;
  readonly losesAgentResponse: () => boolean;
  readonly agentDelayMs: () => number;
  readonly writeDelayMs: () => number;
  readonly onRequest: (request: ApiRequest, reply: ApiReply, delayMs: number) => void;
  readonly onLog: (line: string) => void;
  /** The process has ended by itself, with its reason. */
  readonly onExit: (reason: string) => void;
}

/** What a process cannot reach. */
export type CutOff = "nothing" | "the API server" | "everything";

export const operatorNamespace = "pulumi-kubernetes-operator";

export class OperatorProcess {
  readonly name: string;
  readonly process: VirtualProcess;
  readonly #options: OperatorProcessOptions;
  readonly #connection: ApiConnection;
  #cutOff: CutOff = "nothing";
  #alarmAt = Infinity;
  #cancelAlarm = (): void => undefined;

  constructor(options: OperatorProcessOptions) {
    this.#options = options;
    this.name = options.name;
    this.process = options.time.process(options.name);
    const { cluster } = options;
    this.#connection = new ApiConnection({
      process: this.process,
      server: cluster.server,
      frontend: cluster.frontend,
      storage: cluster.storage,
      user: "operator",
      random: options.random,
      isDown: () => cluster.isDown,
      isPartitioned: () => this.#cutOff !== "nothing",
      faultOf: options.faultOf,
      losesEvent: options.losesEvent,
      watchLagMs: options.watchLagMs,
      writeDelayMs: options.writeDelayMs,
      onProcessed: options.onRequest,
    });
    void this.#run();
  }

  crash(): void {
    this.process.kill();
    this.#cancelAlarm();
  }

  freeze(): void {
    this.process.freeze();
  }

  /** Undefined if the kernel has ended it meanwhile. */
  resume(): void {
    if (this.process.clock.monotonic() > this.#alarmAt) this.#exit("ended by its alarm");
    this.process.resume();
  }

  set cutOff(value: CutOff) {
    this.#cutOff = value;
  }

  breakConnections(): void {
    this.#connection.breakWatches();
  }

  /** After a crash: releases its memory. */
  dispose(): void {
    this.#connection.abortWatches();
  }

  async #run(): Promise<void> {
    const { name, cluster, random, newUid, hasAlarm, listRefs, losesAgentResponse, agentDelayMs } = this.#options;
    const {
      probes: _,
      metrics: __,
      ...options
    } = parseOptions(
      [
        "--agent-image=agent:1",
        `--pod-name=${name}`,
        `--namespace=${operatorNamespace}`,
        "--leader-elect",
        ...this.#options.flags,
      ],
      {},
    );
    const { clock } = this.process;
    try {
      const manager = await operator({
        options,
        credentials: staticCredentials({ server: "https://api", token: "token", tls: {} }),
        log: this.#logger(),
        platform: {
          clock,
          alarm: hasAlarm ? this.#alarm : undefined,
          transport: this.#connection.transport,
          connectAgent: agentConnector({
            process: this.process,
            wire: cluster.server,
            random: seededRandom(random.below(2 ** 31)),
            agentAt: (ip) => (this.#cutOff === "everything" ? "silent" : cluster.agentAt(ip)),
            losesResponse: losesAgentResponse,
            delayMs: agentDelayMs,
          }),
          listRefs,
          pki: simulatedPki(newUid),
        },
      });
      const outcome = await manager.run(new AbortController().signal);
      this.#exit(`ended: ${outcome}`);
    } catch (error) {
      this.#exit(`failed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #logger(): Logger {
    const { clock } = this.process;
    return logger({ level: "debug", write: this.#options.onLog, clock: { ...clock, now: () => clock.now() } });
  }

  #exit(reason: string): void {
    if (this.process.isDead) return;
    this.crash();
    this.#options.onExit(reason);
  }

  /** The kernel's: it fires while the process is frozen, too. */
  readonly #alarm: Alarm = {
    set: (ms) => {
      this.#cancelAlarm();
      this.#alarmAt = this.process.clock.monotonic() + ms;
      this.#cancelAlarm = this.process.after(ms, () => this.#exit("ended by its alarm"));
    },
    clear: () => {
      this.#cancelAlarm();
      this.#alarmAt = Infinity;
    },
  };
}
