/** One life of two Stacks, in phases, each of which the operator may be killed in. */
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { createRepository, serveGit, type GitServer, type TestRepository } from "@pko/agent/testing";
import {
  reconcileRequestAnnotation,
  type LastUpdate,
  type Stack,
  type StackSpec,
  type Update,
  type Workspace,
} from "@pko/api";
import { toolPath } from "@pko/cluster";
import type { Client } from "@pko/kube";
import { stacks } from "@pko/operator";
import { assertNever } from "@pko/rpc";
import {
  faultProxy,
  testNamespace,
  type FaultProxy,
  type ProxiedRequest,
  type TestNamespace,
  type Verdict,
} from "@pko/testkit";

import { Fuse, textOf, type Point, type Where } from "./fuse.ts";
import { PlayedNode } from "./node.ts";
import { Operators, type Blow } from "./operators.ts";
import type { Stage } from "./stage.ts";
import { Witness } from "./witness.ts";

export const phases = ["create", "new commit", "spec change", "resync", "prerequisite", "destroy"] as const;
export type Phase = (typeof phases)[number];

/** What a phase has come to, which must not depend on where the operator died. */
export interface Outcome {
  /** How often the program really ran, by operation and stack. */
  readonly runs: Readonly<Record<string, number>>;
  readonly changes: Readonly<Record<string, number>>;
  readonly state: readonly string[];
}

export interface PhaseEnd extends Outcome {
  /** The calls that the operator made. */
  readonly calls: readonly string[];
  /** Whether the point was reached. */
  readonly isFired: boolean;
  readonly ms: number;
}

/** A phase that did not come to its end in time. */
export class Wedged extends Error {}

export interface LifeOptions {
  readonly blow?: Blow;
  /** The share of calls, of the API server and of agents, that go wrong. */
  readonly trouble?: number;
  /** The most by which a watch is late now and then: the operator's stores are old, and not of one moment. */
  readonly lagMs?: number;
}

/** From the crash, or from the beginning where there is none. */
const patienceMs = Number(process.env["FAULTS_PATIENCE_SECONDS"] ?? 120) * 1000;
/** Nothing is written any more. */
const quietMs = 1_500;
/** Of all events. */
const lateShare = 0.3;

const troubles: readonly Verdict[] = [
  { status: 500 },
  { status: 503, retryAfterSeconds: 0 },
  { status: 429, retryAfterSeconds: 1 },
  { status: 409 },
  { cut: "before" },
  { cut: "after" },
];

interface LifeParts {
  readonly place: TestNamespace;
  readonly proxy: FaultProxy;
  readonly options: LifeOptions;
}

export class Life implements AsyncDisposable {
  readonly #options: LifeOptions;
  readonly #place: TestNamespace;
  readonly #proxy: FaultProxy;
  readonly #folder: string;
  readonly #commits: string[] = [];
  readonly #fuse = new Fuse();
  readonly #git: GitServer;
  readonly #repository: TestRepository;
  readonly #node: PlayedNode;
  readonly #witness: Witness;
  readonly #operators: Operators;
  #isLed = true;
  #troubles = 0;
  #runsBefore = 0;
  #lastWriteAt = 0;
  #lastPhase: Phase | undefined;

  private constructor(stage: Stage, { place, proxy, options }: LifeParts) {
    this.#options = options;
    this.#place = place;
    this.#proxy = proxy;
    this.#folder = join(stage.folder, place.name);
    for (const folder of ["backend", "git"]) mkdirSync(join(this.#folder, folder), { recursive: true });
    writeFileSync(join(this.#folder, "kubeconfig"), proxy.kubeconfig);
    this.#git = serveGit(join(this.#folder, "git"));
    this.#repository = createRepository(join(this.#folder, "git"), "shop");
    const own = { client: place.client, namespace: place.name, folder: this.#folder };
    this.#node = new PlayedNode({
      ...own,
      agent: stage.agent,
      pulumi: this.#countingCli(),
      arrive: (method, workspace) => this.#fuse.arrive(`rpc ${method} ${workspace}`) ?? this.#troubleWithAgent(),
      strike: () => this.#operators.strike(),
    });
    this.#operators = new Operators({ ...own, program: stage.operator, blow: options.blow ?? "kill" });
    this.#witness = new Witness({ ...own, commits: this.#commits });
    proxy.on((request) => this.#judge(request));
    proxy.onEvent(() => this.#lag());
  }

  static async begin(stage: Stage, options: LifeOptions = {}): Promise<Life> {
    const place = await testNamespace({ server: stage.server });
    const life = new Life(stage, { place, proxy: await faultProxy(stage.server.credentials), options });
    await life.#witness.synced;
    return life;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#operators[Symbol.asyncDispose]();
    await this.#node[Symbol.asyncDispose]();
    await this.#witness[Symbol.asyncDispose]();
    await this.#proxy.close();
    await this.#git.stop();
    await this.#place.remove();
    if (process.env["FAULTS_KEEP"] === undefined) rmSync(this.#folder, { recursive: true, force: true });
  }

  get folder(): string {
    return this.#folder;
  }

  /** Calls that went wrong without a point. */
  get troubles(): number {
    return this.#troubles;
  }

  /** The one that it has come through. */
  get lastPhase(): Phase | undefined {
    return this.#lastPhase;
  }

  async run(phase: Phase, point?: Point): Promise<PhaseEnd> {
    const begunAt = performance.now();
    this.#fuse.arm(point);
    this.#isLed = false;
    const isEnd = await this.#act(phase);
    await this.#settled(isEnd, begunAt, `${phase}, ${point ? textOf(point) : "undisturbed"}`);
    await this.#wake();
    if (this.#node.faults.length > 0) throw new AggregateError(this.#node.faults, "the played node failed");
    this.#lastPhase = phase;
    return {
      runs: this.#takeRuns(),
      changes: this.#witness.takeChanges(),
      state: this.#witness.snapshot(),
      calls: this.#fuse.calls,
      isFired: this.#fuse.firedAt !== undefined,
      ms: performance.now() - begunAt,
    };
  }

  /** Sets a phase off; returns how its end is known. */
  async #act(phase: Phase): Promise<() => boolean> {
    switch (phase) {
      case "create": {
        const commit = this.#commit("one");
        this.#operators.start();
        await this.#apply("base", {});
        // Follows a branch that is not there: to ask it is to ask the repository.
        await this.#apply("scout", { branch: "nowhere" });
        return () => this.#isReady("base", ({ lastSuccessfulCommit }) => lastSuccessfulCommit === commit);
      }
      case "new commit": {
        const commit = this.#commit("two");
        const body = { metadata: { annotations: { [reconcileRequestAnnotation]: "look" } } };
        await this.#client.patch(stacks, this.#ref("scout"), { patch: { type: "merge", body } });
        return () => this.#isReady("base", ({ lastSuccessfulCommit }) => lastSuccessfulCommit === commit);
      }
      case "spec change": {
        const resync = { continueResyncOnCommitMatch: true, resyncFrequencySeconds: 3600, refresh: true };
        await this.#apply("base", { ...resync, config: { "shop:size": "3" } });
        return () => this.#isReady("base", ({ generation }) => generation === 2);
      }
      case "resync": {
        const former = await this.#rewind("base", 2 * 3_600_000);
        return () => this.#isReady("base", ({ name }) => name !== former);
      }
      case "prerequisite": {
        const former = await this.#rewind("base", 45 * 60_000);
        await this.#apply("web", {
          destroyOnFinalize: true,
          prerequisites: [{ name: "base", requirement: { succeededWithinDuration: "30m" } }],
        });
        return () => this.#isReady("web") && this.#isReady("base", ({ name }) => name !== former);
      }
      case "destroy":
        await this.#client.delete(stacks, this.#ref("web"));
        return () => !this.#hasTraces("web") && this.#isReady("base");
      default:
        return assertNever(phase);
    }
  }

  get #client(): Client {
    return this.#place.client;
  }

  #ref(name: string): { name: string; namespace: string } {
    return { name, namespace: this.#place.name };
  }

  async #apply(name: string, spec: Partial<StackSpec>): Promise<void> {
    const literal = (value: string) => ({ type: "Literal", literal: { value } });
    const whole: StackSpec = {
      stack: name,
      projectRepo: `http://127.0.0.1:${this.#git.port}/shop.git`,
      branch: "main",
      envRefs: {
        PULUMI_BACKEND_URL: literal(`file://${join(this.#folder, "backend")}`),
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
    this.#commits.push(commit);
    return commit;
  }

  /** As if the last update had ended so much earlier; returns its name. */
  async #rewind(name: string, ms: number): Promise<string | undefined> {
    const { status } = await this.#client.get(stacks, this.#ref(name));
    const lastResyncTime = timeText(Date.parse(status?.lastUpdate?.lastResyncTime ?? "") - ms);
    const patch = { type: "merge", body: { status: { lastUpdate: { lastResyncTime } } } } as const;
    await this.#client.patch(stacks, this.#ref(name), { patch, subresource: "status" });
    return status?.lastUpdate?.name;
  }

  #stack(name: string): Stack | undefined {
    return this.#witness.objects("Stack").find(({ metadata }) => metadata.name === name) as Stack | undefined;
  }

  #isReady(name: string, isRight: (last: LastUpdate) => boolean = () => true): boolean {
    const { status, metadata } = this.#stack(name) ?? {};
    const ready = status?.conditions?.find(({ type }) => type === "Ready");
    const isSeen = ready?.status === "True" && ready.observedGeneration === metadata?.generation;
    return isSeen && status?.lastUpdate !== undefined && isRight(status.lastUpdate);
  }

  #hasTraces(name: string): boolean {
    const kinds = ["Stack", "Workspace", "Update", "StatefulSet", "Service", "Pod", "Secret"];
    return kinds.some((kind) =>
      this.#witness
        .objects(kind)
        .some(({ metadata }) => metadata.name === name || metadata.name?.startsWith(`${name}-`)),
    );
  }

  /** Nothing is under way: every Update has ended and was let go, every Workspace is prepared for its spec. */
  #isAtRest(): boolean {
    const updates = this.#witness.objects("Update") as Update[];
    const isOver = updates.every(
      ({ metadata, status }) =>
        !metadata.finalizers &&
        status?.conditions?.some(({ type, status }) => type === "Complete" && status === "True"),
    );
    const workspaces = this.#witness.objects("Workspace") as Workspace[];
    return (
      isOver &&
      workspaces.every(
        ({ metadata, status }) =>
          status?.observedGeneration === metadata.generation &&
          status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True"),
      )
    );
  }

  async #settled(isEnd: () => boolean, begunAt: number, what: string): Promise<void> {
    const quiet = quietMs + 2 * (this.#options.lagMs ?? 0);
    for (;;) {
      const now = performance.now();
      const isQuiet = isEnd() && this.#isAtRest() && now - this.#lastWriteAt > quiet;
      if (isQuiet && (await this.#isTakenOver())) return;
      if (now - (this.#fuse.firedAt ?? begunAt) > patienceMs) {
        throw new Wedged(
          `${what}: not at its end after ${patienceMs / 1000} s: ${this.#witness.snapshot().join("\n")}`,
        );
      }
      await Bun.sleep(50);
    }
  }

  /** Whether somebody leads, and has for a while. */
  async #isTakenOver(): Promise<boolean> {
    if (this.#isLed || !this.#operators.hasFrozen) return true;
    this.#isLed = await this.#operators.isLed();
    // It begins only now.
    if (this.#isLed) this.#lastWriteAt = performance.now();
    return false;
  }

  /** Who was frozen does nothing any more, and ends. */
  async #wake(): Promise<void> {
    const before = this.#fuse.calls.length;
    const hasEnded = await this.#operators.wake();
    const calls = this.#fuse.calls.slice(before);
    if (hasEnded && calls.length === 0) return;
    const end = hasEnded ? "ended" : "not ended";
    throw new Error(`a deposed leader has ${end}, and made ${calls.join(", ") || "no call"}`);
  }

  #judge(request: ProxiedRequest): Verdict | undefined | Promise<Verdict | undefined> {
    const call = nameOf(request);
    if (call === undefined) return this.#trouble();
    if (request.resource !== "events") this.#lastWriteAt = performance.now();
    const where = this.#fuse.arrive(call);
    switch (where) {
      case undefined:
        return this.#trouble();
      case "before":
        return this.#operators.strike().then(() => ({ cut: "before" }));
      case "during":
      case "after":
        return { afterwards: () => this.#operators.strike() };
      case "lost":
        return { cut: "after" };
      case "cut":
        return { cut: "before" };
      default:
        return assertNever(where);
    }
  }

  #trouble(): Verdict | undefined {
    return this.#isTroubled() ? troubles[Math.floor(Math.random() * troubles.length)] : undefined;
  }

  #troubleWithAgent(): Where | undefined {
    if (!this.#isTroubled()) return undefined;
    return Math.random() < 0.5 ? "cut" : "lost";
  }

  async #lag(): Promise<"pass"> {
    const { lagMs = 0 } = this.#options;
    if (Math.random() < lateShare) await Bun.sleep(Math.random() * lagMs);
    return "pass";
  }

  #isTroubled(): boolean {
    const isTroubled = Math.random() < (this.#options.trouble ?? 0);
    if (isTroubled) this.#troubles += 1;
    return isTroubled;
  }

  /** The CLI, which tells of each operation on a line of a file before it begins. */
  #countingCli(): string {
    const path = join(this.#folder, "pulumi");
    const note = `printf '%s\\n' "$*" >> '${this.#runsFile}'`;
    writeFileSync(path, `#!/bin/sh\n${note}\nexec '${toolPath("pulumi")}' "$@"\n`);
    chmodSync(path, 0o755);
    return path;
  }

  get #runsFile(): string {
    return join(this.#folder, "runs.log");
  }

  #takeRuns(): Record<string, number> {
    const lines = existsSync(this.#runsFile) ? readFileSync(this.#runsFile, "utf8").trimEnd().split("\n") : [];
    const runs: Record<string, number> = {};
    for (const line of lines.slice(this.#runsBefore)) {
      const [, operation, stack] = /^--\S+ --\S+ (up|preview|refresh|destroy|cancel) .*--stack=(\S+)/.exec(line) ?? [];
      if (operation) runs[`${operation} ${stack}`] = (runs[`${operation} ${stack}`] ?? 0) + 1;
    }
    this.#runsBefore = lines.length;
    return runs;
  }
}

const timeText = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

/** Undefined for what changes nothing. */
function nameOf({ isWrite, query, verb, resource, subresource, name, body }: ProxiedRequest): string | undefined {
  if (!isWrite || query.get("dryRun") !== null || resource === "leases") return undefined;
  const kind = subresource === undefined ? resource : `${resource}/${subresource}`;
  if (resource === "events") {
    // One that comes again tells only that it does.
    const { reason = "again", regarding } = JSON.parse(body) as { reason?: string; regarding?: { name?: string } };
    return regarding?.name === "scout" ? undefined : `${verb} ${kind} ${reason}`;
  }
  const object = name ?? nameIn(body);
  if (object === "scout") return undefined;
  return `${verb} ${kind} ${object.replaceAll(/-[0-9a-f]{10,16}(?![0-9a-z])/g, "-HASH")}`;
}

function nameIn(body: string): string {
  const { metadata } = JSON.parse(body) as { metadata?: { name?: string } };
  return metadata?.name ?? "";
}
