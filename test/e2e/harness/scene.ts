/** The fixture of an end-to-end test file: namespaces, an operator that serves them, a Git server and a folder. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createRepository, serveGit, type GitServerOptions, type TestRepository } from "@pko/agent/testing";
import { givenKubeconfig } from "@pko/cluster";
import type { Client } from "@pko/kube";
import { afterAll, beforeAll } from "bun:test";

import type { Watches } from "../../integration/harness/watches.ts";
import { agentErrors, assertNoErrors } from "../../logs/errors.ts";
import type { LogFiles } from "../../logs/log-files.ts";
import { agentLogFiles, agentLogs, assertCleanAgentLogs, assertFollowed } from "./agent-logs.ts";
import {
  deleteStacks,
  installApi,
  machineAddress,
  newNamespace,
  placeIn,
  removeNamespace,
  type Place,
} from "./cluster.ts";
import { startOperator, type Operator, type OperatorSettings } from "./operator.ts";

/** Building images can take most of this time. */
const openingMs = 600_000;
const closingMs = 400_000;

interface SceneOptions {
  /**
   * Settings of the operator, or a function that returns them. The function runs after the namespaces are created and before
   * the operator starts. Use "none" if the test starts its own operator.
   */
  readonly operator?: OperatorSettings | (() => Promise<OperatorSettings>) | "none";
  /** Name prefix of a second namespace that the operator serves. */
  readonly secondNamespace?: string;
  readonly git?: GitServerOptions;
  /** Errors that the tests provoke in the logs of agents; any other one fails the file. */
  readonly agentErrors?: readonly RegExp[];
}

/** Repositories on a server that the operator and pods can reach. */
interface Repositories {
  /** Readable by pods of any user. */
  readonly folder: string;
  readonly origin: string;
  create(name: string): TestRepository;
  url(name: string): string;
  /** Fields of a Stack that follows the branch main of a repository. */
  source(name: string): { readonly projectRepo: string; readonly branch: string };
}

/** Opens a scene before the tests of the file or of the enclosing `describe`, and closes it after them. */
export function useScene(name: string, options: SceneOptions = {}): Scene {
  const scene = new Scene(name, options);
  beforeAll(() => scene.open(), openingMs);
  // Runs even if opening the scene failed.
  afterAll(() => scene[Symbol.asyncDispose](), closingMs);
  return scene;
}

class Scene implements Place, AsyncDisposable {
  readonly folder: string;
  readonly #name: string;
  readonly #options: SceneOptions;
  #opening: Promise<void> | undefined;
  #first: Place | undefined;
  #second: Place | undefined;
  #operator: Operator | undefined;
  #git: Repositories | undefined;
  /** On the local cluster. */
  readonly #logFiles = new Map<string, LogFiles>();
  /** Run in reverse order. */
  readonly #cleanups: (() => unknown)[] = [];

  constructor(name: string, options: SceneOptions) {
    this.#name = name;
    this.#options = options;
    this.folder = mkdtempSync(join(tmpdir(), `pko-${name}-`));
    this.defer(() => rmSync(this.folder, { recursive: true, force: true }));
  }

  get client(): Client {
    return opened(this.#first).client;
  }

  get namespace(): string {
    return opened(this.#first).namespace;
  }

  get watches(): Watches {
    return opened(this.#first).watches;
  }

  get second(): Place {
    return opened(this.#second);
  }

  get operator(): Operator {
    return opened(this.#operator);
  }

  /** The server starts on first use. */
  get git(): Repositories {
    this.#git ??= this.#serveGit();
    return this.#git;
  }

  /** Registers a cleanup that runs after the Stacks are deleted, even if tests failed. */
  defer(cleanup: () => unknown): void {
    this.#cleanups.push(cleanup);
  }

  open(): Promise<void> {
    this.#opening = this.#open();
    return this.#opening;
  }

  async #open(): Promise<void> {
    const { operator = {}, secondNamespace } = this.#options;
    await installApi();
    this.#first = await this.#createPlace(this.#name);
    if (secondNamespace !== undefined) this.#second = await this.#createPlace(secondNamespace);
    if (operator === "none") return;
    const settings = typeof operator === "function" ? await operator() : operator;
    const namespaces = this.#places().map(({ namespace }) => namespace);
    const started = await startOperator(namespaces, settings);
    this.defer(() => started.stop());
    this.#operator = started;
  }

  async #createPlace(name: string): Promise<Place> {
    const namespace = await newNamespace(name);
    this.defer(() => removeNamespace(namespace));
    if (givenKubeconfig === undefined) this.#followLogs(namespace);
    const place = await placeIn(namespace);
    this.defer(() => place.watches[Symbol.asyncDispose]());
    return place;
  }

  #followLogs(namespace: string): void {
    const files = agentLogFiles(namespace);
    this.#logFiles.set(namespace, files);
    this.defer(() => files[Symbol.dispose]());
  }

  #places(): Place[] {
    return [this.#first, this.#second].filter((place) => place !== undefined);
  }

  #serveGit(): Repositories {
    const folder = join(this.folder, "repositories");
    mkdirSync(folder, { mode: 0o755 });
    const server = serveGit(folder, { hostname: machineAddress, ...this.#options.git });
    this.defer(() => server.stop());
    const origin = `http://${machineAddress}:${server.port}`;
    const url = (name: string): string => `${origin}/${name}.git`;
    return {
      folder,
      origin,
      create: (name) => createRepository(folder, name),
      url,
      source: (name) => ({ projectRepo: url(name), branch: "main" }),
    };
  }

  /** Before the Stacks are deleted: on other clusters, logs are lost with their pods. */
  async #checkLogs(place: Place): Promise<void> {
    const files = this.#logFiles.get(place.namespace);
    await (files ? assertFollowed(place, files) : assertCleanAgentLogs(place, this.#options.agentErrors));
  }

  /** Also what agents have logged while their Stacks were deleted. */
  #checkLogFiles({ namespace }: Place): void {
    const logs = this.#logFiles.get(namespace)?.read() ?? [];
    assertNoErrors(agentErrors(logs.join("\n")), this.#options.agentErrors);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Opening may still be in progress if it timed out.
    await this.#opening?.catch(() => undefined);
    const places = this.#places();
    const checks = places.map((place) => () => this.#checkLogs(place));
    const stacks = places.map((place) => () => deleteOrExplain(place));
    const lastChecks = places.map((place) => () => this.#checkLogFiles(place));
    const errors: unknown[] = [];
    for (const cleanUp of [...checks, ...stacks, ...lastChecks, ...this.#cleanups.splice(0).toReversed()]) {
      try {
        await cleanUp();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw new Error(`cleaning up the scene ${this.#name} failed: ${errors.join("\n")}`);
  }
}

/** What the pods have logged is lost with their namespace. */
async function deleteOrExplain(place: Place): Promise<void> {
  try {
    await deleteStacks(place.namespace);
  } catch (error) {
    const logs = await agentLogs(place).catch((problem: unknown) => [String(problem)]);
    const lines = logs.join("\n").split("\n").slice(-100);
    throw new Error(`${String(error)}; the agents have logged:\n${lines.join("\n")}`, { cause: error });
  }
}

function opened<T>(part: T | undefined): T {
  if (part === undefined) throw new Error("the scene was not opened with this part, or is not open yet");
  return part;
}
