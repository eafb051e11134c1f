/** Watching Stacks the way a person does: each thing that happens is one line, with the time since the beginning. */
import type { Stack, Update, Workspace } from "@pko/api";
import { UserError } from "@pko/cluster";
import { isNotFound, type Client, type KubeObject, type Resource } from "@pko/kube";
import { stacks, updates, workspaces } from "@pko/operator";

import { kubectlCommand } from "./kubectl.ts";
import { isReady, isSince, isStalled, resourceLine, seconds, sentenceOf, type Scene } from "./narrate.ts";

const pollMs = 100;
const deadlineMs = 300_000;

export interface StackName {
  readonly name: string;
  readonly namespace: string;
}

/** Until every Stack is ready. `since` is when it all began. */
export async function followStacks(client: Client, names: readonly StackName[], since: Date): Promise<void> {
  for (const name of names) await new Follower(client, name, since).follow();
}

class Follower {
  readonly #client: Client;
  readonly #name: StackName;
  readonly #since: Date;
  #said = "";
  #log: Bun.Subprocess | undefined;
  /** What the pod's log has told, up to its last line. */
  #told: Promise<void> = Promise.resolve();

  constructor(client: Client, name: StackName, since: Date) {
    this.#client = client;
    this.#name = name;
    this.#since = since;
  }

  async follow(): Promise<void> {
    try {
      for (;;) {
        const scene = await this.#look();
        if (scene?.workspace?.status?.address) this.#readLog();
        if (scene && (await this.#narrate(scene))) return;
        if (Date.now() - this.#since.getTime() > deadlineMs) throw this.#gaveUp();
        await Bun.sleep(pollMs);
      }
    } finally {
      this.#log?.kill();
    }
  }

  async #narrate(scene: Scene): Promise<boolean> {
    const ready = isReady(scene.stack);
    // The resources belong before the end.
    if (ready) await Promise.race([this.#told, Bun.sleep(pollMs * 5)]);
    const sentence = sentenceOf(scene);
    if (sentence !== this.#said) this.#say(`${this.#name.name}: ${sentence}`);
    this.#said = sentence;
    if (isStalled(scene.stack)) throw new UserError([`the Stack ${this.#name.name} is stalled: ${sentence}`]);
    return ready;
  }

  async #look(): Promise<Scene | undefined> {
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
    this.#told = this.#tell(log.stdout);
  }

  async #tell(output: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    let rest = "";
    for await (const chunk of output.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      // The kubelet counts in whole seconds: what happened in this one before we came is told again.
      for (const line of lines.filter((each) => isSince(each, this.#since))) {
        const text = resourceLine(line);
        if (text !== undefined) this.#say(`  ${text}`);
        if (line.includes('"run finished"')) return;
      }
    }
  }

  #say(text: string): void {
    const elapsed = seconds(Date.now() - this.#since.getTime());
    console.log(`  ${elapsed.padStart(7)}  ${text.replaceAll("\n", "\n           ")}`);
  }

  #gaveUp(): UserError {
    const { name, namespace } = this.#name;
    return new UserError([
      `the Stack ${name} was not ready after ${deadlineMs / 1000} s (${this.#said})`,
      `to see why: ${kubectlCommand("describe", "stack", name, "--namespace", namespace).join(" ")}`,
    ]);
  }
}
