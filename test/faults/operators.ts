/** The operator of one life, which falls at a point and is followed by another. */
import { join } from "node:path";

import { leaseName } from "@pko/api";
import { builtin, type Client } from "@pko/kube";
import { spawnChild, type ChildProcess } from "@pko/testkit";

/**
 * What happens to the operator at a point: it is killed, and started again; or it is frozen, so that another one leads
 * instead, and it wakes when all is done.
 */
export type Blow = "kill" | "freeze";

interface OperatorsOptions {
  readonly client: Client;
  readonly namespace: string;
  /** With a kubeconfig in it. */
  readonly folder: string;
  /** The operator's program. */
  readonly program: string;
  readonly blow: Blow;
}

/** Short, so that another leads soon. */
const election = { "lease-duration": "6s", "renew-deadline": "4s", "retry-period": "500ms" } as const;
/** A leader that has been deposed ends by itself. */
const wakingMs = 60_000;

export class Operators implements AsyncDisposable {
  readonly #options: OperatorsOptions;
  #latest: ChildProcess | undefined;
  #count = 0;
  #frozen: ChildProcess | undefined;
  #isOver = false;

  constructor(options: OperatorsOptions) {
    this.#options = options;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await Promise.all([this.#latest?.stop("SIGKILL"), this.#frozen?.stop("SIGKILL")]);
  }

  start(): void {
    if (this.#isOver) return;
    this.#count += 1;
    const { folder, namespace, program, blow } = this.#options;
    const flags = {
      kubeconfig: join(folder, "kubeconfig"),
      namespace,
      "watch-namespaces": namespace,
      "agent-image": "agent:1",
      "pod-name": this.#podName,
      "probe-address": "127.0.0.1:0",
      "metrics-address": "127.0.0.1:0",
      "allow-addresses": "127.0.0.1",
      ...(blow === "freeze" && election),
    };
    const given = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    const mode = blow === "freeze" ? ["--leader-elect"] : [];
    const command = [process.execPath, program, "--allow-http", ...mode, ...given];
    const operator = spawnChild({ command, logFile: join(folder, "operator.log") });
    this.#latest = operator;
    void this.#keepUp(operator);
  }

  /**
   * As a kubelet would: an operator ends where its first calls fail, and a leader where the machine is too busy for it to
   * renew its lease.
   */
  async #keepUp(operator: ChildProcess): Promise<void> {
    await operator.exited;
    if (this.#latest === operator) this.start();
  }

  async strike(): Promise<void> {
    const operator = this.#latest;
    this.#latest = undefined;
    if (this.#options.blow === "freeze") {
      if (operator) process.kill(operator.pid, "SIGSTOP");
      this.#frozen = operator;
    } else await operator?.stop("SIGKILL");
    this.start();
  }

  get hasFrozen(): boolean {
    return this.#frozen !== undefined;
  }

  /** Whether the latest leads; always so where there is no election. */
  async isLed(): Promise<boolean> {
    const { client, namespace, blow } = this.#options;
    if (blow !== "freeze") return true;
    const { spec } = await client.get(builtin.leases, { namespace, name: leaseName });
    return spec?.holderIdentity?.includes(this.#podName) ?? false;
  }

  /** Wakes who was frozen, in another's term. Whether it has ended then. */
  async wake(): Promise<boolean> {
    const frozen = this.#frozen;
    if (!frozen) return true;
    process.kill(frozen.pid, "SIGCONT");
    const hasEnded = await Promise.race([frozen.exited.then(() => true), Bun.sleep(wakingMs).then(() => false)]);
    if (hasEnded) this.#frozen = undefined;
    return hasEnded;
  }

  /** Of the latest. */
  get #podName(): string {
    return `operator-${this.#count}`;
  }
}
