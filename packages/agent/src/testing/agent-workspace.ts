/** For tests and benchmarks: a real agent in a separate process, with the real CLI, called over mTLS like by the operator. */
import { spawn, type ChildProcess } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseLogLine, type NumberedEvent } from "@pko/records";
import {
  workspaceServerName,
  type LostRun,
  type Operation,
  type Output,
  type Prepared,
  type PrepareFailure,
  type PrepareRequest,
  type RecordResult,
  type RunResult,
  type SealedPlan,
  type Source,
  type StackSettings,
  type StartRequest,
  type Credentials,
  type WorkspaceRef,
} from "@pko/rpc";
import { connectAgent, type AgentClient } from "@pko/rpc/client";
import { createAuthorities, issueOperatorCertificate, issueWorkspaceCertificate, type Certificate } from "@pko/rpc/pki";
import type { WatchUpdate } from "@pko/rpc/watch";

import { signalProcess } from "../system/processes.ts";
import { writeCertificate } from "./certificate.ts";
import { readyPort } from "./ready-port.ts";

const workspace = { namespace: "test", name: "web" };
const main = join(import.meta.dir, "../main.ts");

export interface AgentOptions {
  /** The CLI. */
  readonly pulumi: string;
  /** Folders of the CLI's language hosts, for a PATH. */
  readonly path: readonly string[];
  /** The agent, if not from its sources. */
  readonly program?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: readonly string[];
  /** Runs before each command of the CLI, in a shell, with the CLI's arguments. */
  readonly beforeCli?: string;
}

interface StartOptions {
  /** The command to run instead of `bun main.ts`. */
  readonly command?: readonly string[];
  /** A folder with the CLI and its language hosts, instead of the cache. */
  readonly path?: string;
}

interface AgentAddress {
  readonly workspace: WorkspaceRef;
  readonly ip: string;
  readonly port: number;
  readonly credentials: Credentials;
}

interface StartRunOptions {
  /** By default the stack that was prepared first. */
  readonly stack?: string;
  readonly lostRuns?: LostRun[];
  readonly timeouts?: StartRequest["timeouts"];
}

/** A workspace: it outlives an agent process. */
export class AgentWorkspace {
  readonly root = mkdtempSync(join(tmpdir(), "pko-agent-it-"));
  readonly share = join(this.root, "share");
  readonly backend = join(this.root, "backend");
  readonly cliLog = join(this.root, "cli.log");
  readonly #options: AgentOptions;
  #agent: ChildProcess | undefined;
  #client: AgentClient | undefined;
  #operator: Certificate | undefined;
  #port = 0;
  #stack = "dev";
  /** The container's log: standard output and standard error. */
  log = "";

  constructor(options: AgentOptions) {
    this.#options = options;
    for (const folder of [this.share, this.backend, join(this.root, "tls"), join(this.root, "home")]) mkdirSync(folder);
  }

  get agent(): AgentClient {
    if (!this.#client) throw new Error("the agent is not started");
    return this.#client;
  }

  /** What an operator needs to connect to the agent. */
  get operatorConnection(): AgentAddress {
    if (!this.#operator) throw new Error("the agent is not started");
    return { workspace, ip: "127.0.0.1", port: this.#port, credentials: this.#operator };
  }

  get pid(): number {
    return this.#agent?.pid ?? 0;
  }

  async start(how: StartOptions = {}): Promise<this> {
    const now = new Date();
    const authorities = await createAuthorities(now);
    this.#operator = await issueOperatorCertificate(authorities, now);
    const own = await issueWorkspaceCertificate(authorities, workspace, now);
    writeCertificate(join(this.root, "tls"), own);
    const flags = ["--share", this.share, "--host", "127.0.0.1", "--port", "0", "--tls", join(this.root, "tls")];
    const local = ["--allow-http", "--allow-addresses", "127.0.0.1"];
    const [file = "", ...first] = how.command ?? [process.execPath, this.#options.program ?? main];
    const cli = how.path === undefined ? this.#cli() : join(how.path, "pulumi");
    const args = [...first, ...flags, ...local, "--pulumi", cli, ...(this.#options.flags ?? [])];
    const env = this.#environment(how.path);
    this.#agent = spawn(file, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    this.#agent.stdout?.on("data", (data: Buffer) => (this.log += data.toString()));
    const port = await this.#listening();
    this.#port = port;
    const operator = this.#operator;
    this.#client = connectAgent({
      address: { host: "127.0.0.1", port, serverName: workspaceServerName(workspace) },
      credentials: () => operator,
    });
    return this;
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const agent = this.#agent;
    if (!agent || agent.exitCode !== null || agent.signalCode !== null) return;
    const exited = new Promise((resolve) => {
      agent.once("exit", resolve);
    });
    agent.kill(signal);
    await exited;
  }

  async dispose(): Promise<void> {
    await this.kill("SIGKILL");
    // Commands that outlive their agent would write into a deleted folder.
    for (const name of readdirSync("/proc")) {
      if (/^\d+$/.test(name) && workingFolder(name).startsWith(this.root)) signalProcess(Number(name), "SIGKILL");
    }
    rmSync(this.root, { recursive: true, force: true });
  }

  /** The arguments of every CLI command so far. */
  cliCalls(): string[] {
    return existsSync(this.cliLog) ? readFileSync(this.cliLog, "utf8").trimEnd().split("\n") : [];
  }

  /** A wrapper around the CLI that records each call in a file. */
  #cli(): string {
    const path = join(this.root, "pulumi");
    // One write per call, because calls may run in parallel.
    const record = `printf '%s\\n' "$(printf '%s' "$*" | tr '\\n' ' ')" >> '${this.cliLog}'`;
    writeFileSync(
      path,
      `#!/bin/sh\n${record}\n${this.#options.beforeCli ?? ""}\nexec '${this.#options.pulumi}' "$@"\n`,
    );
    chmodSync(path, 0o755);
    return path;
  }

  #environment(path = this.#options.path.join(":")): Record<string, string> {
    return {
      PATH: `${path}:${process.env["PATH"] ?? ""}`,
      HOME: join(this.root, "home"),
      PULUMI_HOME: join(this.root, "home", ".pulumi"),
      PULUMI_BACKEND_URL: `file://${this.backend}`,
      PULUMI_CONFIG_PASSPHRASE: "canary-passphrase",
      // Tests must not access the network.
      HTTPS_PROXY: "http://127.0.0.1:9",
      NO_PROXY: "127.0.0.1",
      ...this.#options.env,
    };
  }

  async #listening(): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    let lines = "";
    this.#agent?.stderr?.on("data", (data: Buffer) => {
      lines += data.toString();
      this.log += data.toString();
      const port = readyPort(lines);
      if (port !== undefined) resolve(port);
    });
    this.#agent?.once("exit", (code) => reject(new Error(`the agent exited with code ${code}: ${lines}`)));
    return await promise;
  }

  async prepare(source: Source, stack: Partial<StackSettings> = {}): Promise<Prepared> {
    const result = await this.tryPrepare(source, stack);
    if ("reason" in result) throw new Error(`${result.reason}: ${result.message}\n${result.lines.join("\n")}`);
    return result;
  }

  async tryPrepare(source: Source, stack: Partial<StackSettings> = {}): Promise<Prepared | PrepareFailure> {
    return await this.tryPrepareStacks(source, [stack]);
  }

  /** Prepares any number of stacks, including none. */
  async tryPrepareStacks(
    source: Source,
    stacks: readonly Partial<StackSettings>[],
  ): Promise<Prepared | PrepareFailure> {
    const settings = stacks.map((stack) => ({ name: "dev", create: true, config: [], environments: [], ...stack }));
    const request: PrepareRequest = { source, stacks: settings };
    const [stack] = settings;
    this.#stack = stack?.name ?? this.#stack;
    const reply = await this.agent.prepare(request);
    if (!reply.ok) throw new Error(`prepare: ${reply.error.code} ${reply.error.message}`);
    return reply.value.ok ? reply.value.prepared : reply.value.failure;
  }

  async startRun(runId: string, operation: Operation, options: StartRunOptions = {}): Promise<void> {
    const { stack = this.#stack, lostRuns = [], timeouts } = options;
    const reply = await this.agent.start({ runId, stack, operation, lostRuns, ...(timeouts && { timeouts }) });
    if (!reply.ok) throw new Error(`start: ${reply.error.code} ${reply.error.message}`);
  }

  /** All updates of the run, up to its result. */
  async updates(runId: string, fromSeq = 1): Promise<WatchUpdate[]> {
    const all: WatchUpdate[] = [];
    for await (const update of this.agent.watch({ runId, fromSeq }, { maxAttempts: 20 })) all.push(update);
    return all;
  }

  async result(runId: string): Promise<RunResult> {
    const last = (await this.updates(runId)).at(-1);
    if (last?.type !== "result") throw new Error(`no result: ${JSON.stringify(last)}`);
    return last.result;
  }

  async run(runId: string, operation: Operation, options: StartRunOptions = {}): Promise<RunResult> {
    await this.startRun(runId, operation, options);
    return await this.result(runId);
  }

  async outputs(runId: string): Promise<readonly Output[]> {
    const reply = await this.agent.outputs({ runId });
    if (!reply.ok) throw new Error(`outputs: ${reply.error.code} ${reply.error.message}`);
    return reply.value;
  }

  /** The plan that a run made. */
  async plan(runId: string): Promise<SealedPlan> {
    const reply = await this.agent.plan({ runId });
    if (!reply.ok) throw new Error(`plan: ${reply.error.code} ${reply.error.message}`);
    return reply.value;
  }

  /** The record of a finished run. */
  async record(runId: string): Promise<RecordResult> {
    const reply = await this.agent.record({ runId });
    if (!reply.ok) throw new Error(`record: ${reply.error.code} ${reply.error.message}`);
    return reply.value;
  }

  /** The events of a run in the container's log, which may arrive later than the answers of the agent. */
  async feed(runId: string, lastSeq: number): Promise<NumberedEvent[]> {
    for (;;) {
      const events = this.#feed(runId);
      if (events.some(({ seq }) => seq === lastSeq)) return events;
      await Bun.sleep(5);
    }
  }

  #feed(runId: string): NumberedEvent[] {
    return this.log.split("\n").flatMap((line) => {
      const parsed = parseLogLine(line);
      return parsed.kind === "event" && parsed.run === runId ? [parsed.event] : [];
    });
  }

  /** Resolves at the run's first update that matches. */
  async until(runId: string, matches: (update: WatchUpdate) => boolean): Promise<void> {
    for await (const update of this.agent.watch({ runId, fromSeq: 1 })) if (matches(update)) return;
    throw new Error("the run ended without such an update");
  }
}

function workingFolder(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return "";
  }
}
