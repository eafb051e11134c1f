/** The compiled operator as a process of this machine, and what it uses. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { spawnChild, freePort, type ApiServer, type ChildProcess } from "@pko/testkit";

export interface Usage {
  readonly residentMb: number;
  /** Without pages of files, such as the executable, which the kernel can drop. */
  readonly anonymousMb: number;
  /** The most that was resident since it started. */
  readonly peakMb: number;
  readonly cpuMs: number;
}

const ticksPerSecond = 100;

export class OperatorProcess {
  readonly #child: ChildProcess;
  readonly #metrics: string;

  private constructor(child: ChildProcess, metrics: string) {
    this.#child = child;
    this.#metrics = metrics;
  }

  static async start(executable: string, server: ApiServer, folder: string): Promise<OperatorProcess> {
    const [probes, metrics] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
    const child = spawnChild({
      command: [
        executable,
        `--kubeconfig=${server.kubeconfig}`,
        "--namespace=pulumi-kubernetes-operator",
        "--agent-image=example.com/operator",
        "--leader-elect",
        `--probe-address=${probes}`,
        `--metrics-address=${metrics}`,
      ],
      logFile: join(folder, "operator.log"),
    });
    return new OperatorProcess(child, `http://${metrics}/metrics`);
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
    const status = readFileSync(`/proc/${this.#child.pid}/status`, "utf8");
    const mb = (field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(status)?.[1]) / 1000;
    const stat = readFileSync(`/proc/${this.#child.pid}/stat`, "utf8");
    const [user = 0, system = 0] = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 13)
      .map(Number);
    return {
      residentMb: mb("VmRSS"),
      anonymousMb: mb("RssAnon"),
      peakMb: mb("VmHWM"),
      cpuMs: ((user + system) * 1000) / ticksPerSecond,
    };
  }

  /** The sum of all series of a metric; undefined while the operator does not respond or has no such metric. */
  async metric(name: string): Promise<number | undefined> {
    const text = await fetch(this.#metrics).then(
      (response) => response.text(),
      () => "",
    );
    const values = text.split("\n").filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
    return values.length === 0 ? undefined : values.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  }
}
