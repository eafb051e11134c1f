/** kubectl-pulumi as a process of a user, against the tests' API server, with objects and statuses as the operator writes them. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  labelsOfStack,
  leaseName,
  type StackSpec,
  type StackStatus,
  type Update,
  type UpdateRecord,
  type UpdateRecordContent,
  updateRecordKind,
  type WorkspaceReason,
} from "@pko/api";
import { builtin, resource, timestamp, type Client } from "@pko/kube";
import { kubeconfigText, programPath, testNamespace, waitFor, type ApiServer, type TestNamespace } from "@pko/testkit";

import { expect } from "bun:test";
import Schema from "typebox/schema";

import { aRecord } from "../../../packages/cli/src/testing/runs.ts";
import { apiServerWithApi, pathTo, stacks, testTimeoutMs, updates, workspaces } from "../api/install.ts";
import { grant, userNamed, type Rule } from "../harness/permissions.ts";
import { stackStatuses } from "../harness/stack-status.ts";

export { testTimeoutMs };

const records = resource<UpdateRecord>(updateRecordKind);

export interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

interface CliOptions {
  readonly columns?: number;
  /** Called with everything that it has printed, whenever that is more. */
  readonly onOutput?: (printed: string) => void;
  /** Called with a function that sends a signal to the process. */
  readonly onStart?: (kill: Kill) => void;
}

type Kill = (signal: NodeJS.Signals) => void;

export type Cli = (args: readonly string[], options?: CliOptions) => Promise<Result>;

/** The user's own environment, for example KUBECONFIG, has no effect. */
export function cliWith(kubeconfig: string): Cli {
  return async (args, { columns = 100, onOutput, onStart } = {}) => {
    const child = Bun.spawn([process.execPath, programPath("cli"), ...args, "--kubeconfig", kubeconfig], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      env: { PATH: process.env["PATH"] ?? "", COLUMNS: String(columns) },
    });
    onStart?.((signal) => child.kill(signal));
    const printed = { out: "", err: "" };
    const read = async (name: "out" | "err", stream: ReadableStream<Uint8Array>): Promise<void> => {
      const decoder = new TextDecoder();
      for await (const chunk of stream) {
        printed[name] += decoder.decode(chunk, { stream: true });
        onOutput?.(printed.out + printed.err);
      }
    };
    await Promise.all([read("out", child.stdout), read("err", child.stderr)]);
    return { code: await child.exited, ...printed };
  };
}

/** Starts a command, and waits until it has printed the text. Its result is awaited with `result`. */
export async function startUntil(
  cli: Cli,
  args: readonly string[],
  text: string,
): Promise<{ readonly result: Promise<Result>; readonly kill: Kill }> {
  const shown = Promise.withResolvers<void>();
  const onOutput = (printed: string): void => {
    if (printed.includes(text)) shown.resolve();
  };
  let kill: Kill = () => undefined;
  const result = cli(args, { columns: 200, onOutput, onStart: (started) => (kill = started) });
  // A command that ends early has failed: its result shows why.
  await Promise.race([shown.promise, result]);
  return { result, kill };
}

/** A command in a terminal of its own. */
export class TerminalSession {
  readonly #child: Bun.Subprocess;
  #printed = "";

  constructor(kubeconfig: string, args: readonly string[]) {
    const decoder = new TextDecoder();
    this.#child = Bun.spawn([process.execPath, programPath("cli"), ...args, "--kubeconfig", kubeconfig], {
      terminal: {
        cols: 200,
        rows: 50,
        data: (_, bytes) => void (this.#printed += decoder.decode(bytes, { stream: true })),
      },
      env: { PATH: process.env["PATH"] ?? "", COLUMNS: "200", TERM: "xterm", NO_COLOR: "1" },
    });
  }

  /** Fails with what was printed if the command ends without it. */
  async until(text: string): Promise<void> {
    const isThere = async (): Promise<boolean> => {
      // What it printed last may arrive after its end.
      if (this.#printed.includes(text)) return await Promise.resolve(true);
      if (this.#child.exitCode !== null) throw new Error(`ended without "${text}": ${this.#printed}`);
      return false;
    };
    await waitFor(isThere, { timeoutMs: testTimeoutMs / 2, what: text });
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** As when a person closes the window, or the connection to the machine breaks. */
  close(): void {
    this.#child.terminal?.close();
  }

  /** Returns its exit code. */
  async ended(): Promise<number> {
    return await this.#child.exited;
  }
}

export class CliStage implements AsyncDisposable {
  readonly server: ApiServer;
  readonly namespace: string;
  readonly client: Client;
  /** As a cluster admin. */
  readonly cli: Cli;
  readonly #place: TestNamespace;
  readonly #folder: string;

  private constructor(server: ApiServer, place: TestNamespace, folder: string) {
    this.server = server;
    this.#place = place;
    this.#folder = folder;
    this.namespace = place.name;
    this.client = server.client;
    this.cli = this.#inNamespace(cliWith(server.kubeconfig));
  }

  /** With the Lease of an operator that leads. */
  static async set(): Promise<CliStage> {
    const server = await apiServerWithApi();
    const folder = await mkdtemp(join(tmpdir(), "cli-stage-"));
    const stage = new CliStage(server, await testNamespace(), folder);
    await stage.lease({ renewedAgoMs: 1000 });
    return stage;
  }

  #inNamespace(cli: Cli): Cli {
    return async (args, options) => await cli([...args, "-n", this.namespace], options);
  }

  inTerminal(args: readonly string[], kubeconfig = this.server.kubeconfig): TerminalSession {
    return new TerminalSession(kubeconfig, [...args, "-n", this.namespace]);
  }

  /** A user who has exactly these permissions in the namespace of the stage. */
  async user(name: string, rules: readonly Rule[]): Promise<Cli> {
    return cliWith(await this.userConfig(name, rules));
  }

  /** The path of the user's kubeconfig. */
  async userConfig(name: string, rules: readonly Rule[]): Promise<string> {
    const { namespace } = this;
    await grant(this.client, { name, namespace }, { subject: userNamed(name), rules });
    const { cert, key } = await this.server.authority.issue({ commonName: name });
    const base64 = (text: string): string => Buffer.from(text).toString("base64");
    const path = join(this.#folder, name);
    const cluster = { server: this.server.url, "certificate-authority-data": base64(this.server.authority.cert) };
    const user = { "client-certificate-data": base64(cert), "client-key-data": base64(key) };
    await writeFile(path, kubeconfigText({ cluster, user }));
    return path;
  }

  async lease(change: { renewedAgoMs: number; annotations?: Record<string, string> }): Promise<void> {
    const { apiVersion, kind } = builtin.leases;
    const renewTime = new Date(Date.now() - change.renewedAgoMs).toISOString().replace("Z", "000Z");
    const spec = { holderIdentity: "operator-0", leaseDurationSeconds: 15, renewTime };
    const metadata = { name: leaseName, namespace: this.namespace, annotations: change.annotations ?? {} };
    await this.client.apply(builtin.leases, { apiVersion, kind, metadata, spec }, { fieldManager: "test" });
  }

  async stack(name: string, spec: Partial<StackSpec> = {}, status?: StackStatus): Promise<void> {
    const { apiVersion, kind } = stacks;
    const metadata = { name, namespace: this.namespace };
    const source = spec.projectRepo ? {} : { programRef: { name: "program" } };
    await this.client.create(stacks, { apiVersion, kind, metadata, spec: { stack: "dev", ...source, ...spec } });
    if (status) await this.status(name, status);
  }

  async status(name: string, status: StackStatus): Promise<void> {
    const ref = { name, namespace: this.namespace };
    await this.client.patch(stacks, ref, { patch: { type: "merge", body: { status } }, subresource: "status" });
  }

  async workspace(name: string, reason: WorkspaceReason, message: string): Promise<void> {
    const { apiVersion, kind } = workspaces;
    const ref = { name, namespace: this.namespace };
    await this.client.create(workspaces, { apiVersion, kind, metadata: ref, spec: {} });
    const isReady = reason === "Succeeded";
    const conditions = [condition("Ready", { status: isReady ? "True" : "False", reason, message })];
    const body = { status: { observedGeneration: 1, conditions } };
    await this.client.patch(workspaces, ref, { patch: { type: "merge", body }, subresource: "status" });
  }

  async update(name: string, stack: string, change: Pick<Update, "spec" | "status">): Promise<Update> {
    const { apiVersion, kind } = updates;
    const ref = { name, namespace: this.namespace };
    const spec = { workspaceName: stack, stackName: "dev", type: "up", ...change.spec };
    const created = await this.client.create(updates, {
      apiVersion,
      kind,
      metadata: { ...ref, labels: labelsOfStack(stack) },
      spec,
    });
    const body = { status: change.status ?? {} };
    await this.client.patch(updates, ref, { patch: { type: "merge", body }, subresource: "status" });
    return created;
  }

  /** The record of a run, with the labels that the operator copies from its Update. */
  async record(name: string, stack: string, record: Partial<UpdateRecordContent>): Promise<void> {
    const object = await aRecord({ name, stack, record: { startTime: ago(120), endTime: ago(60), ...record } });
    const metadata = { ...object.metadata, namespace: this.namespace };
    await this.client.create(records, { ...object, metadata });
  }

  /** The pod of a Stack's workspace. There is no kubelet, so the test sets its status. */
  async pod(stack: string, status: object): Promise<void> {
    const { apiVersion, kind } = builtin.pods;
    const ref = { name: `${stack}-workspace-0`, namespace: this.namespace };
    const containers = [{ name: "pulumi", image: "example.com/workspace:1" }];
    await this.client.create(builtin.pods, { apiVersion, kind, metadata: ref, spec: { containers } });
    const patch = { type: "merge", body: { status } } as const;
    await this.client.patch(builtin.pods, ref, { patch, subresource: "status" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#place.remove();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

interface PublishedSchema {
  readonly $defs: Readonly<Record<string, object>>;
}

const published = JSON.parse(readFileSync(pathTo("../../../docs/cli.schema.json"), "utf8")) as PublishedSchema;

/** Checks a document of -o json against the published schema. */
export function parseDocument(out: string): Record<string, unknown> {
  const document = JSON.parse(out) as Record<string, unknown>;
  const kind = String(document["kind"]);
  const { $defs } = published;
  if (!$defs[kind]) throw new Error(`there is no schema for ${kind}`);
  // The errors of this kind are easier to read than those of all.
  const [, errors] = Schema.Errors({ $ref: `#/$defs/${kind}`, $defs }, document);
  expect(errors).toEqual([]);
  expect(Schema.Check(published, document)).toBe(true);
  return document;
}

export const ago = (seconds: number): string => timestamp(Date.now() - seconds * 1000);
export const ahead = (seconds: number): string => timestamp(Date.now() + seconds * 1000);

export const { condition, stalled, reconciling, ready } = stackStatuses(() => ago(3600));
