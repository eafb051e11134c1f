/** The compiled operator as a process of this machine, and what it uses. */
import { join } from "node:path";

import { spawnChild, freePort, type ChildProcess } from "@pko/testkit";

import { processUsage, type Usage } from "./usage.ts";

interface OperatorProcessOptions {
  readonly executable: string;
  readonly kubeconfig: string;
  readonly namespace: string;
  /** For its log. */
  readonly folder: string;
  readonly flags?: readonly string[];
}

/** The chart's memory limit: in a container, the runtime decides by the limit how large its heap may grow before it collects garbage. */
const memoryLimitBytes = 512 * 1024 * 1024;

export class OperatorProcess {
  readonly #child: ChildProcess;
  readonly #metrics: string;
  readonly logFile: string;

  private constructor(child: ChildProcess, metrics: string, logFile: string) {
    this.#child = child;
    this.#metrics = metrics;
    this.logFile = logFile;
  }

  static async start({
    executable,
    kubeconfig,
    namespace,
    folder,
    flags = [],
  }: OperatorProcessOptions): Promise<OperatorProcess> {
    const [probes, metrics] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
    const logFile = join(folder, "operator.log");
    const child = spawnChild({
      command: [
        executable,
        `--kubeconfig=${kubeconfig}`,
        `--namespace=${namespace}`,
        "--agent-image=example.com/operator",
        "--leader-elect",
        `--probe-address=${probes}`,
        `--metrics-address=${metrics}`,
        ...flags,
      ],
      logFile,
      env: { BUN_JSC_forceRAMSize: String(memoryLimitBytes) },
    });
    return new OperatorProcess(child, `http://${metrics}/metrics`, logFile);
  }

  get pid(): number {
    return this.#child.pid;
  }

  /** Ends it like a pod: it gives up the Lease. */
  async stop(): Promise<void> {
    await this.#child.stop();
  }

  /** Rejects when the operator ends: it does that itself if it cannot renew the Lease in time. */
  async whileRunning<T>(work: Promise<T>): Promise<T> {
    const ended = this.#child.exited.then(async () => {
      throw new Error(`the operator has ended:\n${await this.#child.log()}`);
    });
    return await Promise.race([work, ended]);
  }

  usage(): Usage {
    return processUsage(this.#child.pid);
  }

  /** The sum of all series of a metric; undefined while the operator does not respond or has no such metric. */
  async metric(name: string): Promise<number | undefined> {
    return (await this.metrics()).get(name);
  }

  /** The sum of all series of each metric; empty while the operator does not respond. */
  async metrics(): Promise<ReadonlyMap<string, number>> {
    const sums = new Map<string, number>();
    for (const { name, value } of await this.#scrape()) sums.set(name, (sums.get(name) ?? 0) + value);
    return sums;
  }

  /** The series of a metric, by their labels. */
  async series(name: string): Promise<ReadonlyMap<string, number>> {
    const found = (await this.#scrape()).filter((sample) => sample.name === name);
    return new Map(found.map(({ labels, value }) => [labels, value]));
  }

  async #scrape(): Promise<Sample[]> {
    const text = await fetch(this.#metrics).then(
      (response) => response.text(),
      () => "",
    );
    return Array.from(text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)/gm), ([, name = "", labels = "", value]) => ({
      name,
      labels,
      value: Number(value),
    }));
  }
}

interface Sample {
  readonly name: string;
  readonly labels: string;
  readonly value: number;
}
