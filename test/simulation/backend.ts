/** A bucket with the state of Pulumi stacks and their locks, which clusters may share. It knows who really writes. */
export interface StackState {
  /** What is deployed; undefined after a destroy. */
  readonly content: string | undefined;
  /** Changes with every write. */
  readonly version: number;
}

/** A process of the Pulumi CLI. */
export interface CliProcess {
  readonly hostname: string;
  readonly pid: number;
  readonly startedAt: string;
  readonly runId: string;
  /** The cluster and the workspace, to explain a violation. */
  readonly where: string;
  isAlive: boolean;
}

interface Lock {
  readonly process: CliProcess;
  /** By the clock of its node, in whole seconds. */
  readonly time: Date;
}

export interface Write {
  /** The cluster and the workspace. */
  readonly where: string;
  readonly stack: string;
  readonly operation: string;
  readonly runId: string;
  readonly content: string | undefined;
}

interface BackendOptions {
  readonly onViolation: (what: string) => void;
  readonly onWrite: (write: Write) => void;
}

export class Backend {
  readonly #states = new Map<string, StackState>();
  readonly #locks = new Map<string, Lock>();
  readonly #writers = new Map<string, Set<CliProcess>>();
  readonly writes: Write[] = [];
  readonly #options: BackendOptions;

  constructor(options: BackendOptions) {
    this.#options = options;
  }

  state(stack: string): StackState {
    return this.#states.get(stack) ?? { content: undefined, version: 0 };
  }

  lockOf(stack: string): Lock | undefined {
    return this.#locks.get(stack);
  }

  lock(stack: string, process: CliProcess, nowMs: number): boolean {
    if (this.#locks.has(stack)) return false;
    this.#locks.set(stack, { process, time: new Date(Math.floor(nowMs / 1000) * 1000) });
    return true;
  }

  /** Like `pulumi cancel`: whoever holds the lock. */
  removeLock(stack: string): void {
    this.#locks.delete(stack);
  }

  unlock(stack: string, process: CliProcess): void {
    if (this.#locks.get(stack)?.process === process) this.#locks.delete(stack);
  }

  startWriting(stack: string, process: CliProcess): void {
    const writers = this.#writers.get(stack) ?? new Set();
    for (const other of writers) {
      if (other.isAlive) this.#options.onViolation(`two writers of ${stack}: ${text(other)} and ${text(process)}`);
    }
    writers.add(process);
    this.#writers.set(stack, writers);
  }

  stopWriting(stack: string, process: CliProcess): void {
    this.#writers.get(stack)?.delete(process);
  }

  write(write: Write): void {
    this.writes.push(write);
    this.#options.onWrite(write);
    this.#states.set(write.stack, { content: write.content, version: this.state(write.stack).version + 1 });
  }

  /** The locks of processes that no longer exist, which people remove. */
  removeStaleLocks(): string[] {
    const stale = [...this.#locks].filter(([, { process }]) => !process.isAlive).map(([stack]) => stack);
    for (const stack of stale) this.#locks.delete(stack);
    return stale;
  }
}

const text = ({ where, pid, runId }: CliProcess): string => `${where} (PID ${pid}, run ${runId})`;
