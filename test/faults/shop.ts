/** The repository of a lifecycle, and its Stacks. */
import { join } from "node:path";

import { createRepository, serveGit, type GitServer, type TestRepository } from "@pko/agent/testing";
import type { ApprovalRequest, LastUpdate, Stack, StackSpec, Update } from "@pko/api";
import { timestamp, type Client } from "@pko/kube";
import { stacks } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import type { Observer } from "./observer.ts";

export interface ShopOptions {
  readonly client: Client;
  readonly namespace: string;
  /** Contains the folders `backend` and `git`. */
  readonly folder: string;
  readonly observer: Pick<Observer, "objects">;
  /** All commits, in order. */
  readonly commits: string[];
}

interface ProgramParts {
  /** The input of the resource `kept`. */
  readonly kept?: string;
  /** The names of further resources. */
  readonly resources?: readonly string[];
  readonly variables?: object;
}

/** Of a step within a phase; the operator may be restarted before it. */
const stepTimeoutMs = 600_000;

export class Shop {
  readonly #options: ShopOptions;
  readonly #git: GitServer;
  readonly #repository: TestRepository;

  constructor(options: ShopOptions) {
    const { folder } = options;
    this.#options = options;
    this.#git = serveGit(join(folder, "git"));
    this.#repository = createRepository(join(folder, "git"), "shop");
  }

  async stop(): Promise<void> {
    await this.#git.stop();
  }

  get client(): Client {
    return this.#options.client;
  }

  get folder(): string {
    return this.#options.folder;
  }

  get lastCommit(): string | undefined {
    return this.#options.commits.at(-1);
  }

  ref(name: string): { name: string; namespace: string } {
    return { name, namespace: this.#options.namespace };
  }

  async apply(name: string, spec: Partial<StackSpec>): Promise<void> {
    const literal = (value: string) => ({ type: "Literal", literal: { value } });
    const whole: StackSpec = {
      stack: name,
      projectRepo: `http://127.0.0.1:${this.#git.port}/shop.git`,
      ...(spec.commit === undefined && { branch: "main" }),
      ...spec,
      envRefs: {
        PULUMI_BACKEND_URL: literal(`file://${join(this.folder, "backend")}`),
        PULUMI_CONFIG_PASSPHRASE: literal("passphrase"),
        ...spec.envRefs,
      },
    };
    const { apiVersion, kind } = stacks;
    const body = { apiVersion, kind, metadata: this.ref(name), spec: whole };
    await this.client.apply(stacks, body, { fieldManager: "test" });
  }

  /** Returns the commit of the changed program. */
  commit(text: string, { kept = "kept", resources = [], variables = {} }: ProgramParts = {}): string {
    const stash = (input: string) => ({ type: "pulumi:index:Stash", properties: { input } });
    // One after another, so that the CLI always prints them in this order.
    const further = (name: string) => ({ ...stash(name), options: { dependsOn: ["${kept}"] } });
    const project = {
      name: "shop",
      runtime: "yaml",
      config: { size: { type: "string", default: "1" } },
      variables,
      resources: { kept: stash(kept), ...Object.fromEntries(resources.map((name) => [name, further(name)])) },
      outputs: { text, size: "${size}" },
    };
    const commit = this.#repository.commit({ "Pulumi.yaml": JSON.stringify(project) });
    this.#options.commits.push(commit);
    return commit;
  }

  /** Moves the end of the last update into the past; returns its name. */
  async rewind(name: string, ms: number): Promise<string | undefined> {
    const { status } = await this.client.get(stacks, this.ref(name));
    const lastResyncTime = timestamp(Date.parse(status?.lastUpdate?.lastResyncTime ?? "") - ms);
    await this.#patchStatus(name, { lastUpdate: { lastResyncTime } });
    return status?.lastUpdate?.name;
  }

  /** Moves the expiry of the plan that waits for an approval into the past. */
  async expire(name: string): Promise<void> {
    await this.#patchStatus(name, { approval: { expiresAt: timestamp(Date.now() - 1000) } });
  }

  async #patchStatus(name: string, status: object): Promise<void> {
    const patch = { type: "merge", body: { status } } as const;
    await this.client.patch(stacks, this.ref(name), { patch, subresource: "status" });
  }

  /** Waits for a step within a phase. */
  async until<T>(what: string, find: () => T | undefined | false): Promise<T> {
    return await waitFor(find, { timeoutMs: stepTimeoutMs, what });
  }

  /** The plan that waits for an approval. */
  request(name: string): ApprovalRequest | undefined {
    const { approval } = this.#stack(name)?.status ?? {};
    return approval?.state === "Pending" && approval.appliedBy === undefined ? approval : undefined;
  }

  update(matches: (update: Update) => boolean): Update | undefined {
    return (this.#options.observer.objects("Update") as Update[]).find(matches);
  }

  isReady(name: string, matches: (last: LastUpdate) => boolean = () => true): boolean {
    const { status, metadata } = this.#stack(name) ?? {};
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    const isCurrent = ready?.status === "True" && ready.observedGeneration === metadata?.generation;
    return isCurrent && status?.lastUpdate !== undefined && matches(status.lastUpdate);
  }

  hasReason(name: string, reason: string): boolean {
    const { status, metadata } = this.#stack(name) ?? {};
    const conditions = status?.conditions ?? [];
    return conditions.some((each) => each.reason === reason && each.observedGeneration === metadata?.generation);
  }

  hasTraces(name: string): boolean {
    const kinds = ["Stack", "Workspace", "Update", "UpdateRecord", "StatefulSet", "Service", "Pod", "Secret"];
    return kinds.some((kind) =>
      this.#options.observer
        .objects(kind)
        .some(({ metadata }) => metadata.name === name || metadata.name?.startsWith(`${name}-`)),
    );
  }

  #stack(name: string): Stack | undefined {
    return this.#options.observer.objects("Stack").find(({ metadata }) => metadata.name === name) as Stack | undefined;
  }
}
