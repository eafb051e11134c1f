/** What a file of end-to-end tests works in: namespaces, an operator that serves them, a Git server, a folder; gone after it. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createRepository, serveGit, type GitServerOptions, type TestRepository } from "@pko/agent/testing";
import { network } from "@pko/cluster";
import type { Client } from "@pko/kube";
import { afterAll, beforeAll } from "bun:test";

import { clusterClient, deleteStacks, installApi, newNamespace, removeNamespace, type Place } from "./cluster.ts";
import { startOperator, type Operator, type OperatorSettings } from "./operator.ts";

/** Images may have to be built before the first scene. */
const openingMs = 600_000;
const closingMs = 400_000;

interface SceneOptions {
  /**
   * Settings of its operator, or what makes them when everything else is there: whatever the operator shall find when
   * it starts can be made in it. "none" where a test brings an operator of its own.
   */
  readonly operator?: OperatorSettings | (() => Promise<OperatorSettings>) | "none";
  /** Another namespace that the operator serves, by the beginning of its name. */
  readonly beside?: string;
  /** Of its Git server. */
  readonly git?: GitServerOptions;
}

/** Repositories behind a server that operator and pods reach. */
interface Repositories {
  /** Where they are. Pods of any user may read it. */
  readonly folder: string;
  /** Of the server. */
  readonly origin: string;
  create(name: string): TestRepository;
  url(name: string): string;
}

/** Opens before the tests of the file, or of the `describe` that this stands in, and closes after them. */
export function useScene(name: string, options: SceneOptions = {}): Scene {
  const scene = new Scene(name, options);
  beforeAll(() => scene.open(), openingMs);
  // Also after an opening that failed.
  afterAll(() => scene[Symbol.asyncDispose](), closingMs);
  return scene;
}

class Scene implements Place, AsyncDisposable {
  readonly folder: string;
  readonly #name: string;
  readonly #options: SceneOptions;
  #opening: Promise<void> | undefined;
  #client: Client | undefined;
  #namespace: string | undefined;
  #beside: Place | undefined;
  #operator: Operator | undefined;
  #git: Repositories | undefined;
  /** What ends what there is, the last first. */
  readonly #ends: (() => unknown)[] = [];

  constructor(name: string, options: SceneOptions) {
    this.#name = name;
    this.#options = options;
    this.folder = mkdtempSync(join(tmpdir(), `pko-${name}-`));
    this.defer(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  get client(): Client {
    return there(this.#client);
  }

  get namespace(): string {
    return there(this.#namespace);
  }

  get beside(): Place {
    return there(this.#beside);
  }

  get operator(): Operator {
    return there(this.#operator);
  }

  /** Served from its first use on. */
  get git(): Repositories {
    this.#git ??= this.#serveGit();
    return this.#git;
  }

  /** Is called at the end, when the Stacks are gone, in whatever way the tests and the opening went. */
  defer(end: () => unknown): void {
    this.#ends.push(end);
  }

  open(): Promise<void> {
    this.#opening = this.#open();
    return this.#opening;
  }

  async #open(): Promise<void> {
    const { operator = {}, beside } = this.#options;
    await installApi();
    this.#client = await clusterClient();
    this.#namespace = await this.#makeNamespace(this.#name);
    if (beside !== undefined) {
      this.#beside = { client: this.#client, namespace: await this.#makeNamespace(beside) };
    }
    if (operator === "none") return;
    const settings = typeof operator === "function" ? await operator() : operator;
    const started = await startOperator(this.#namespaces(), settings);
    this.defer(() => started.stop());
    this.#operator = started;
  }

  async #makeNamespace(name: string): Promise<string> {
    const namespace = await newNamespace(name);
    this.defer(() => removeNamespace(namespace));
    return namespace;
  }

  #namespaces(): string[] {
    return [this.#namespace, this.#beside?.namespace].filter((name) => name !== undefined);
  }

  #serveGit(): Repositories {
    const folder = join(this.folder, "repositories");
    mkdirSync(folder, { mode: 0o755 });
    const server = serveGit(folder, { hostname: network.machine, ...this.#options.git });
    this.defer(() => server.stop());
    const origin = `http://${network.machine}:${server.port}`;
    return {
      folder,
      origin,
      create: (name) => createRepository(folder, name),
      url: (name) => `${origin}/${name}.git`,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // One that took too long may still be at work.
    await this.#opening?.catch(() => undefined);
    const stacks = this.#namespaces().map((namespace) => () => deleteStacks(namespace));
    const troubles: unknown[] = [];
    for (const end of [...stacks, ...this.#ends.splice(0).toReversed()]) {
      try {
        await end();
      } catch (error) {
        troubles.push(error);
      }
    }
    if (troubles.length > 0) throw new Error(`the scene ${this.#name} did not end well: ${troubles.join("\n")}`);
  }
}

function there<T>(part: T | undefined): T {
  if (part === undefined) throw new Error("the scene has no such part, or is not open yet");
  return part;
}
