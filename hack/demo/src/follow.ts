/** Prints the progress of Stacks: one line per change, with the elapsed time. */
import type { Stack, Update, Workspace } from "@pko/api";
import { kubectlCommand, UserError } from "@pko/cluster";
import { isNotFound, type Client, type KubeObject, type Resource } from "@pko/kube";
import { stacks, updates, workspaces } from "@pko/operator";

import {
  isEndOfRun,
  isReady,
  isSince,
  isStalled,
  resourceLine,
  seconds,
  progressLine,
  type StackProgress,
} from "./progress-lines.ts";

const pollMs = 100;
const deadlineMs = 300_000;
/** How long the log of a finished update is awaited. */
const logMs = 5000;

export interface StackName {
  readonly name: string;
  readonly namespace: string;
}

/** Returns when every Stack is ready. `since` is the start time. */
export async function followStacks(client: Client, names: readonly StackName[], since: Date): Promise<void> {
  for (const name of names) await new Follower(client, name, since).follow();
}

class Follower {
  readonly #client: Client;
  readonly #name: StackName;
  readonly #since: Date;
  #lastLine = "";
  #log: Bun.Subprocess | undefined;
  /** Resolves when the log of the update has been printed. */
  #logPrinted: Promise<void> = Promise.resolve();

  constructor(client: Client, name: StackName, since: Date) {
    this.#client = client;
    this.#name = name;
    this.#since = since;
  }

  async follow(): Promise<void> {
    try {
      for (;;) {
        const progress = await this.#observe();
        if (progress?.workspace?.status?.address) this.#readLog();
        if (progress && (await this.#printProgress(progress))) return;
        if (Date.now() - this.#since.getTime() > deadlineMs) throw this.#timeout();
        await Bun.sleep(pollMs);
      }
    } finally {
      this.#log?.kill();
    }
  }

  async #printProgress(progress: StackProgress): Promise<boolean> {
    const ready = isReady(progress.stack);
    // Print the resources before the final line.
    if (ready) await Promise.race([this.#logPrinted, Bun.sleep(logMs)]);
    const line = progressLine(progress);
    if (line !== this.#lastLine) this.#print(`${this.#name.name}: ${line}`);
    this.#lastLine = line;
    if (isStalled(progress.stack)) throw new UserError([`the Stack ${this.#name.name} cannot be deployed: ${line}`]);
    return ready;
  }

  async #observe(): Promise<StackProgress | undefined> {
    const [stack, workspace, update] = await Promise.all([
      this.#get<Stack>(stacks),
      this.#get<Workspace>(workspaces),
      this.#lastUpdate(),
    ]);
    return stack && { stack, ...(workspace && { workspace }), ...(update && { update }) };
  }

  async #get<T extends KubeObject>(resource: Resource<T>): Promise<T | undefined> {
    try {
      return await this.#client.get(resource, this.#name);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async #lastUpdate(): Promise<Update | undefined> {
    const { name, namespace } = this.#name;
    const { items } = await this.#client.list(updates, { namespace, labelSelector: `pulumi.com/stack-name=${name}` });
    return items
      .toSorted((a, b) => `${a.metadata.creationTimestamp}`.localeCompare(`${b.metadata.creationTimestamp}`))
      .at(-1);
  }

  #readLog(): void {
    if (this.#log) return;
    const { name, namespace } = this.#name;
    const pod = `${name}-workspace-0`;
    const options = ["--namespace", namespace, "--container=pulumi", `--since-time=${this.#since.toISOString()}`];
    const log = Bun.spawn(kubectlCommand("logs", "--follow", pod, ...options), {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    });
    this.#log = log;
    this.#logPrinted = this.#printLog(log.stdout);
  }

  async #printLog(output: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    let rest = "";
    for await (const chunk of output.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      // The kubelet filters by whole seconds, so lines of an earlier run in the same second may appear.
      for (const line of lines.filter((each) => isSince(each, this.#since))) {
        const text = resourceLine(line);
        if (text !== undefined) this.#print(`  ${text}`);
        if (isEndOfRun(line)) return;
      }
    }
  }

  #print(text: string): void {
    const elapsed = seconds(Date.now() - this.#since.getTime());
    console.log(`  ${elapsed.padStart(7)}  ${text.replaceAll("\n", "\n           ")}`);
  }

  #timeout(): UserError {
    const { name, namespace } = this.#name;
    return new UserError([
      `the Stack ${name} was not ready within ${deadlineMs / 1000} s (${this.#lastLine})`,
      `to see why: ${kubectlCommand("describe", "stack", name, "--namespace", namespace).join(" ")}`,
    ]);
  }
}
