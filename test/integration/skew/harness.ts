/** The operator's side of version 1 and of this version, and the agent of version 1 as an executable. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { preparations, runs, type AgentPod } from "@pko/operator";
import type { PrepareRequest, RunResult, StartRequest } from "@pko/rpc";
import { waitFor } from "@pko/testkit";
import { afterAll } from "bun:test";

import { preparations as oldPreparations } from "../../skew/v1/operator/src/agents/preparations.ts";
import { runs as oldRuns } from "../../skew/v1/operator/src/agents/runs.ts";
import type {
  PrepareRequest as OldPrepareRequest,
  StartRequest as OldStartRequest,
} from "../../skew/v1/rpc/src/index.ts";
import type { TestWorkspace } from "../agent/harness.ts";

const repository = join(import.meta.dir, "../../..");

/** Compiled from the frozen sources. */
export function compileOldAgent(): string {
  const folder = mkdtempSync(join(tmpdir(), "pko-skew-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const executable = join(folder, "agent");
  const main = join(repository, "test/skew/v1/agent/src/main.ts");
  execFileSync(process.execPath, ["build", "--compile", main, "--outfile", executable], { stdio: "pipe" });
  return executable;
}

export function podOf(web: TestWorkspace): AgentPod {
  const { workspace, ip, port } = web.dialled;
  return { workspace, uid: "pod-a", restarts: 0, ip, port };
}

type State = { readonly state: string };

interface Books<P, S> {
  readonly preparations: { ensure(pod: AgentPod, request: P): State; stop(): Promise<void> };
  readonly runs: {
    ensure(pod: AgentPod, request: S): State;
    attach(pod: AgentPod, runId: string): State;
    cancel(pod: AgentPod, runId: string): void;
    stop(): Promise<void>;
  };
}

export interface Finished {
  readonly state: "finished";
  readonly result: RunResult;
  readonly outputs: readonly { readonly name: string; readonly value?: unknown }[];
}

/** One operator process, as far as it deals with agents. */
export class OperatorSide<P, S extends { readonly runId: string }> {
  readonly #books: Books<P, S>;
  readonly #pod: AgentPod;

  constructor(pod: AgentPod, books: Books<P, S>) {
    this.#pod = pod;
    this.#books = books;
    afterAll(() => this.stop());
  }

  async prepared(request: P): Promise<State> {
    const state = (): State => this.#books.preparations.ensure(this.#pod, request);
    await waitFor(() => state().state === "done", { timeoutMs: 60_000, what: "the workspace to be prepared" });
    return state();
  }

  /** Starts the run, or attaches to it, and waits until it is followed. */
  async following(request: S): Promise<void> {
    await this.#until(() => this.#books.runs.ensure(this.#pod, request), "running");
  }

  async refused(request: S): Promise<State> {
    return await this.#until(() => this.#books.runs.ensure(this.#pod, request), "refused");
  }

  async finished(runId: string): Promise<Finished> {
    return (await this.#until(() => this.#books.runs.attach(this.#pod, runId), "finished")) as Finished;
  }

  cancel(runId: string): void {
    this.#books.runs.cancel(this.#pod, runId);
  }

  /** As a process that ends: its streams break off, its runs go on. */
  async stop(): Promise<void> {
    await Promise.all([this.#books.preparations.stop(), this.#books.runs.stop()]);
  }

  async #until(state: () => State, expected: string): Promise<State> {
    const seen: string[] = [];
    const isThere = (): boolean => {
      seen.push(JSON.stringify(state()));
      return state().state === expected;
    };
    await waitFor(isThere, { timeoutMs: 30_000, what: `a run that is ${expected}` }).catch((error: unknown) => {
      throw new Error(`last state: ${seen.at(-1)}`, { cause: error });
    });
    return state();
  }
}

const quick = { baseMs: 20, factor: 2, capMs: 200, jitter: 0 };

export function oldOperator(web: TestWorkspace): OperatorSide<OldPrepareRequest, OldStartRequest> {
  const options = { authority: authorityOf(web), wake: () => undefined, backoff: quick, patience: quick };
  return new OperatorSide(podOf(web), { preparations: oldPreparations(options), runs: oldRuns(options) });
}

export function newOperator(web: TestWorkspace): OperatorSide<PrepareRequest, StartRequest> {
  const options = { authority: authorityOf(web), wake: () => undefined, backoff: quick, patience: quick };
  return new OperatorSide(podOf(web), { preparations: preparations(options), runs: runs(options) });
}

function authorityOf(web: TestWorkspace) {
  const { credentials } = web.dialled;
  return { operatorCredentials: () => credentials, distrusted: () => undefined };
}
