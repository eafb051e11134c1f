/** The operator's side of version 1 and of the current version, and the agent of version 1 as an executable. */
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

/** Compiles the frozen sources. */
export function compileOldAgent(): string {
  const folder = mkdtempSync(join(tmpdir(), "pko-skew-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const executable = join(folder, "agent");
  const main = join(repository, "test/skew/v1/agent/src/main.ts");
  execFileSync(process.execPath, ["build", "--compile", main, "--outfile", executable], { stdio: "pipe" });
  return executable;
}

export function agentPod(web: TestWorkspace): AgentPod {
  const { workspace, ip, port } = web.operatorConnection;
  return { workspace, uid: "pod-a", restarts: 0, ip, port };
}

type State = { readonly state: string };

interface Clients<P, S> {
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

/** The part of an operator process that calls agents. */
export class OperatorSide<P, S extends { readonly runId: string }> {
  readonly #clients: Clients<P, S>;
  readonly #pod: AgentPod;

  constructor(pod: AgentPod, clients: Clients<P, S>) {
    this.#pod = pod;
    this.#clients = clients;
    afterAll(() => this.stop());
  }

  async prepared(request: P): Promise<State> {
    const state = (): State => this.#clients.preparations.ensure(this.#pod, request);
    await waitFor(() => state().state === "done", { timeoutMs: 60_000, what: "the workspace to be prepared" });
    return state();
  }

  /** Starts the run, or attaches to it, and waits until it is followed. A short run may have finished by then. */
  async following(request: S): Promise<void> {
    await this.#until(() => this.#clients.runs.ensure(this.#pod, request), "running", "finished");
  }

  async refused(request: S): Promise<State> {
    return await this.#until(() => this.#clients.runs.ensure(this.#pod, request), "refused");
  }

  async finished(runId: string): Promise<Finished> {
    return (await this.#until(() => this.#clients.runs.attach(this.#pod, runId), "finished")) as Finished;
  }

  cancel(runId: string): void {
    this.#clients.runs.cancel(this.#pod, runId);
  }

  /** Like the end of the operator process: its streams end, the runs continue. */
  async stop(): Promise<void> {
    await Promise.all([this.#clients.preparations.stop(), this.#clients.runs.stop()]);
  }

  async #until(state: () => State, ...expected: readonly string[]): Promise<State> {
    const seen: string[] = [];
    const isReached = (): boolean => {
      seen.push(JSON.stringify(state()));
      return expected.includes(state().state);
    };
    const what = `a run that is ${expected.join(" or ")}`;
    await waitFor(isReached, { timeoutMs: 60_000, what }).catch((error: unknown) => {
      throw new Error(`last state: ${seen.at(-1)}`, { cause: error });
    });
    return state();
  }
}

const quick = { baseMs: 20, factor: 2, capMs: 200, jitter: 0 };

export function oldOperator(web: TestWorkspace): OperatorSide<OldPrepareRequest, OldStartRequest> {
  const options = { authority: clientCa(web), wake: () => undefined, backoff: quick, patience: quick };
  return new OperatorSide(agentPod(web), { preparations: oldPreparations(options), runs: oldRuns(options) });
}

export function newOperator(web: TestWorkspace): OperatorSide<PrepareRequest, StartRequest> {
  const options = { ca: clientCa(web), wake: () => undefined, backoff: quick, busyBackoff: quick };
  const preparing = preparations(options);
  return new OperatorSide(agentPod(web), {
    preparations: preparing,
    runs: runs({ ...options, preparations: preparing }),
  });
}

function clientCa(web: TestWorkspace) {
  const { credentials } = web.operatorConnection;
  return { operatorCredentials: () => credentials, distrusted: () => undefined };
}
