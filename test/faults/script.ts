/** The actions of each phase, and the condition for its end. */
import { join } from "node:path";

import { createRepository, serveGit, type GitServer, type TestRepository } from "@pko/agent/testing";
import { reconcileRequestAnnotation, type LastUpdate, type Stack, type StackSpec } from "@pko/api";
import { timestamp, type Client } from "@pko/kube";
import { stacks } from "@pko/operator";

import type { Observer } from "./observer.ts";

export const phases = ["create", "new commit", "spec change", "resync", "prerequisite", "destroy"] as const;
export type Phase = (typeof phases)[number];

interface ScriptOptions {
  readonly client: Client;
  readonly namespace: string;
  /** Contains the folders `backend` and `git`. */
  readonly folder: string;
  readonly observer: Pick<Observer, "objects">;
  /** All commits, in order. */
  readonly commits: string[];
}

export class Script {
  readonly #options: ScriptOptions;
  readonly #git: GitServer;
  readonly #repository: TestRepository;

  constructor(options: ScriptOptions) {
    const { folder } = options;
    this.#options = options;
    this.#git = serveGit(join(folder, "git"));
    this.#repository = createRepository(join(folder, "git"), "shop");
  }

  async stop(): Promise<void> {
    await this.#git.stop();
  }

  /** Starts a phase and returns the condition for its end. */
  async start(phase: Phase): Promise<() => boolean> {
    switch (phase) {
      case "create": {
        const commit = this.#commit("one");
        await this.#apply("base", {});
        // Follows a missing branch of the same repository: a reconciliation request for it makes the operator poll the repository.
        await this.#apply("scout", { branch: "nowhere" });
        return () => this.#isReady("base", ({ lastSuccessfulCommit }) => lastSuccessfulCommit === commit);
      }
      case "new commit": {
        const commit = this.#commit("two");
        const body = { metadata: { annotations: { [reconcileRequestAnnotation]: "poll" } } };
        await this.#client.patch(stacks, this.#ref("scout"), { patch: { type: "merge", body } });
        return () => this.#isReady("base", ({ lastSuccessfulCommit }) => lastSuccessfulCommit === commit);
      }
      case "spec change": {
        const resync = { continueResyncOnCommitMatch: true, resyncFrequencySeconds: 3600, refresh: true };
        await this.#apply("base", { ...resync, config: { "shop:size": "3" } });
        return () => this.#isReady("base", ({ generation }) => generation === 2);
      }
      case "resync": {
        const previous = await this.#rewind("base", 2 * 3_600_000);
        return () => this.#isReady("base", ({ name }) => name !== previous);
      }
      case "prerequisite": {
        const previous = await this.#rewind("base", 45 * 60_000);
        await this.#apply("web", {
          destroyOnFinalize: true,
          prerequisites: [{ name: "base", requirement: { succeededWithinDuration: "30m" } }],
        });
        return () => this.#isReady("web") && this.#isReady("base", ({ name }) => name !== previous);
      }
      case "destroy":
        await this.#client.delete(stacks, this.#ref("web"));
        return () => !this.#hasTraces("web") && this.#isReady("base");
    }
  }

  get #client(): Client {
    return this.#options.client;
  }

  #ref(name: string): { name: string; namespace: string } {
    return { name, namespace: this.#options.namespace };
  }

  async #apply(name: string, spec: Partial<StackSpec>): Promise<void> {
    const literal = (value: string) => ({ type: "Literal", literal: { value } });
    const whole: StackSpec = {
      stack: name,
      projectRepo: `http://127.0.0.1:${this.#git.port}/shop.git`,
      branch: "main",
      envRefs: {
        PULUMI_BACKEND_URL: literal(`file://${join(this.#options.folder, "backend")}`),
        PULUMI_CONFIG_PASSPHRASE: literal("passphrase"),
      },
      ...spec,
    };
    const { apiVersion, kind } = stacks;
    const body = { apiVersion, kind, metadata: this.#ref(name), spec: whole };
    await this.#client.apply(stacks, body, { fieldManager: "test" });
  }

  #commit(text: string): string {
    const project = {
      name: "shop",
      runtime: "yaml",
      config: { size: { type: "string", default: "1" } },
      resources: { kept: { type: "pulumi:index:Stash", properties: { input: "kept" } } },
      outputs: { text, size: "${size}" },
    };
    const commit = this.#repository.commit({ "Pulumi.yaml": JSON.stringify(project) });
    this.#options.commits.push(commit);
    return commit;
  }

  /** Moves the end of the last update into the past; returns its name. */
  async #rewind(name: string, ms: number): Promise<string | undefined> {
    const { status } = await this.#client.get(stacks, this.#ref(name));
    const lastResyncTime = timestamp(Date.parse(status?.lastUpdate?.lastResyncTime ?? "") - ms);
    const patch = { type: "merge", body: { status: { lastUpdate: { lastResyncTime } } } } as const;
    await this.#client.patch(stacks, this.#ref(name), { patch, subresource: "status" });
    return status?.lastUpdate?.name;
  }

  #stack(name: string): Stack | undefined {
    return this.#options.observer.objects("Stack").find(({ metadata }) => metadata.name === name) as Stack | undefined;
  }

  #isReady(name: string, matches: (last: LastUpdate) => boolean = () => true): boolean {
    const { status, metadata } = this.#stack(name) ?? {};
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    const isCurrent = ready?.status === "True" && ready.observedGeneration === metadata?.generation;
    return isCurrent && status?.lastUpdate !== undefined && matches(status.lastUpdate);
  }

  #hasTraces(name: string): boolean {
    const kinds = ["Stack", "Workspace", "Update", "StatefulSet", "Service", "Pod", "Secret"];
    return kinds.some((kind) =>
      this.#options.observer
        .objects(kind)
        .some(({ metadata }) => metadata.name === name || metadata.name?.startsWith(`${name}-`)),
    );
  }
}
