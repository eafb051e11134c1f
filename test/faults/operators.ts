/** The operator of one lifecycle, which crashes at a point and is replaced by another. */
import { join } from "node:path";

import { leaseName } from "@pko/api";
import { builtin, type Client } from "@pko/kube";
import { spawnChild, type ChildProcess } from "@pko/testkit";

/**
 * What happens to the operator at a crash point: it is killed and restarted; or it is frozen, so that another one takes
 * over, and it is resumed at the end of the phase.
 */
export type CrashMode = "kill" | "freeze";

interface OperatorsOptions {
  readonly client: Client;
  readonly namespace: string;
  /** Contains the kubeconfig. */
  readonly folder: string;
  /** The command that starts the operator, without its flags. */
  readonly program: readonly string[];
  readonly crashMode: CrashMode;
  /** Further variables of the operator. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
}

/** Short, so that another operator takes over soon. */
const election = { "lease-duration": "6s", "renew-deadline": "4s", "retry-period": "500ms" } as const;
/** How long a former leader may take to end by itself. */
const resumeTimeoutMs = 60_000;

export class Operators implements AsyncDisposable {
  readonly #options: OperatorsOptions;
  #latest: ChildProcess | undefined;
  #count = 0;
  #frozen: ChildProcess | undefined;
  #isDisposed = false;

  constructor(options: OperatorsOptions) {
    this.#options = options;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isDisposed = true;
    await Promise.all([this.#latest?.stop("SIGKILL"), this.#frozen?.stop("SIGKILL")]);
  }

  start(): void {
    if (this.#isDisposed) return;
    this.#count += 1;
    const { folder, namespace, program, crashMode, environment = {} } = this.#options;
    const flags = {
      kubeconfig: join(folder, "kubeconfig"),
      namespace,
      "watch-namespaces": namespace,
      "agent-image": "agent:1",
      "pod-name": this.#podName,
      "probe-address": "127.0.0.1:0",
      "metrics-address": "127.0.0.1:0",
      "allow-addresses": "127.0.0.1",
      ...(crashMode === "freeze" && election),
    };
    const given = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
    const mode = crashMode === "freeze" ? ["--leader-elect"] : [];
    const command = [...program, "--allow-http", ...mode, ...given];
    const operator = spawnChild({ command, logFile: join(folder, "operator.log"), env: environment });
    this.#latest = operator;
    void this.#restartAfterExit(operator);
  }

  /**
   * Restarts the operator like a kubelet: it ends if its first calls fail, and a leader ends if the machine is too busy to
   * renew its lease.
   */
  async #restartAfterExit(operator: ChildProcess): Promise<void> {
    await operator.exited;
    if (this.#latest === operator) this.start();
  }

  async crash(): Promise<void> {
    const operator = this.#latest;
    this.#latest = undefined;
    if (this.#options.crashMode === "freeze" && operator) await this.#freeze(operator);
    else await operator?.stop("SIGKILL");
    this.start();
  }

  /** A replica that does not lead yet has nothing to lose, and would not end when it resumes. */
  async #freeze(operator: ChildProcess): Promise<void> {
    process.kill(operator.pid, "SIGSTOP");
    if (await this.isLed()) this.#frozen = operator;
    else await operator.stop("SIGKILL");
  }

  get hasFrozen(): boolean {
    return this.#frozen !== undefined;
  }

  /** Whether the latest operator leads; always true without leader election. */
  async isLed(): Promise<boolean> {
    const { client, namespace, crashMode } = this.#options;
    if (crashMode !== "freeze") return true;
    const lease = await client.find(builtin.leases, { namespace, name: leaseName });
    return lease?.spec?.holderIdentity?.includes(this.#podName) ?? false;
  }

  /** Resumes the frozen operator in another's term and returns whether it ended. */
  async resumeFrozen(): Promise<boolean> {
    const frozen = this.#frozen;
    if (!frozen) return true;
    process.kill(frozen.pid, "SIGCONT");
    const hasEnded = await Promise.race([frozen.exited.then(() => true), Bun.sleep(resumeTimeoutMs).then(() => false)]);
    if (hasEnded) this.#frozen = undefined;
    return hasEnded;
  }

  /** The pod name of the latest operator. */
  get #podName(): string {
    return `operator-${this.#count}`;
  }
}
