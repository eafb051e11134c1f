/** The actions of each phase, and the condition for its end. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";

import { createRepository, serveGit, type GitServer, type TestRepository } from "@pko/agent/testing";
import {
  ignoreWindowsUntilAnnotation,
  reconcileRequestAnnotation,
  type LastUpdate,
  type Stack,
  type StackSpec,
} from "@pko/api";
import { timestamp, type Client } from "@pko/kube";
import { stacks } from "@pko/operator";

import type { Observer } from "./observer.ts";

/** The phases of each kind of lifecycle, in order. */
export const stories = {
  /** A Stack, and another one that depends on it. */
  updates: ["create", "new commit", "spec change", "resync", "prerequisite", "destroy"],
  /** A Stack that needs approvals. */
  control: ["approval", "timeout", "suspend", "closed window", "new plan", "approved destroy"],
} as const;
export type Story = keyof typeof stories;
export type Phase = (typeof stories)[Story][number];
export const storyNames = Object.keys(stories) as Story[];
export const phases: readonly Phase[] = [...stories.updates, ...stories.control];

/** The stacks whose changes all need an approval. */
export const guardedStacks = ["vault"];

/** Opens for a minute at New Year. */
const closedWindow = { schedule: "0 0 1 1 *", durationSeconds: 60 };

interface ProgramParts {
  /** The input of the resource. */
  readonly kept?: string;
  readonly variables?: object;
}

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
      case "approval": {
        const commit = await this.#applyGuarded("one");
        return () => this.#isReady("vault", ({ lastSuccessfulCommit }) => lastSuccessfulCommit === commit);
      }
      case "timeout":
        execFileSync("mkfifo", [this.#pipe]);
        await this.#applyGuarded("hung", { updateTimeoutSeconds: 3, maxFailures: 1 });
        return () => this.#hasReason("vault", "RetriesExhausted");
      case "suspend":
        await this.#applyGuarded("two", { suspend: true });
        return () => this.#hasReason("vault", "Suspended");
      case "closed window":
        await this.#applyGuarded("three", { updateWindows: [closedWindow] });
        return () => this.#hasReason("vault", "OutsideUpdateWindow");
      case "new plan": {
        const annotations = { [ignoreWindowsUntilAnnotation]: timestamp(Date.now() + 24 * 3_600_000) };
        const patch = { type: "merge", body: { metadata: { annotations } } } as const;
        await this.#client.patch(stacks, this.#ref("vault"), { patch });
        const commit = this.#options.commits.at(-1);
        return () => this.#isReady("vault", ({ lastSuccessfulCommit }) => lastSuccessfulCommit === commit);
      }
      case "approved destroy":
        await this.#client.delete(stacks, this.#ref("vault"));
        return () => !this.#hasTraces("vault");
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
      ...(spec.commit === undefined && { branch: "main" }),
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

  /** Returns the commit of the changed program. */
  async #applyGuarded(text: "one" | "two" | "three" | "hung", spec: Partial<StackSpec> = {}): Promise<string> {
    const variables = text === "hung" ? { slow: { "fn::readFile": this.#pipe } } : {};
    const commit = this.#commit(text, { kept: text === "hung" ? "${slow}" : text, variables });
    await this.#apply("vault", { commit, destroyOnFinalize: true, approval: { required: "Always" }, ...spec });
    return commit;
  }

  /** A program that reads this pipe waits for a writer, and there is none. */
  get #pipe(): string {
    return join(this.#options.folder, "pipe");
  }

  #commit(text: string, { kept = "kept", variables = {} }: ProgramParts = {}): string {
    const project = {
      name: "shop",
      runtime: "yaml",
      config: { size: { type: "string", default: "1" } },
      variables,
      resources: { kept: { type: "pulumi:index:Stash", properties: { input: kept } } },
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

  #hasReason(name: string, reason: string): boolean {
    const { status, metadata } = this.#stack(name) ?? {};
    const conditions = status?.conditions ?? [];
    return conditions.some((each) => each.reason === reason && each.observedGeneration === metadata?.generation);
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
