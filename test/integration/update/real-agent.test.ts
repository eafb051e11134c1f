/** The Update controller with the real agent in a process of its own, and the real CLI. */
import { expect, test } from "bun:test";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { toolPath } from "@pko/cluster";
import { builtin } from "@pko/kube";
import { preparations, readOutputs, type AgentPod, type Authority } from "@pko/operator";
import type { PrepareRequest, WorkspaceRef } from "@pko/rpc";
import { waitFor } from "@pko/testkit";

import { World } from "./harness.ts";

const repository = join(import.meta.dir, "../../..");
const succeeded = { Progressing: "False/Complete", Failed: "False/UpdateSucceeded", Complete: "True/Updated" };

/** What a workspace's pod would hold. */
class AgentProcess implements AsyncDisposable {
  readonly #root = mkdtempSync(join(tmpdir(), "pko-update-it-"));
  #child: ChildProcess | undefined;
  log = "";

  async start(authority: Authority, workspace: WorkspaceRef): Promise<number> {
    for (const folder of ["tls", "share", "backend", "home"]) mkdirSync(join(this.#root, folder), { recursive: true });
    const { ca, cert, key } = await authority.workspaceCertificate(workspace);
    for (const [name, text] of Object.entries({ "ca.crt": ca, "tls.crt": cert, "tls.key": key })) {
      writeFileSync(join(this.#root, "tls", name), text);
    }
    const folders = ["--share", join(this.#root, "share"), "--tls", join(this.#root, "tls")];
    const flags = ["--host", "127.0.0.1", "--port", "0", "--pulumi", toolPath("pulumi"), ...folders];
    const main = join(repository, "packages/agent/src/main.ts");
    this.#child = spawn(process.execPath, [main, ...flags], { env: this.#env(), stdio: ["ignore", "ignore", "pipe"] });
    this.#child.stderr?.on("data", (data: Buffer) => (this.log += data.toString()));
    return await waitFor(
      () => {
        const port = /"message":"agent ready"[^\n]*"port":(\d+)/.exec(this.log)?.[1];
        return port === undefined ? undefined : Number(port);
      },
      { timeoutMs: 20_000, what: "the agent to be ready" },
    );
  }

  #env(): Record<string, string> {
    const tools = (["pulumi", "pulumi-language-yaml"] as const).map((name) => dirname(toolPath(name)));
    return {
      PATH: [...tools, process.env["PATH"] ?? ""].join(":"),
      HOME: join(this.#root, "home"),
      PULUMI_HOME: join(this.#root, "home", ".pulumi"),
      PULUMI_BACKEND_URL: `file://${join(this.#root, "backend")}`,
      PULUMI_CONFIG_PASSPHRASE: "canary-passphrase",
      // Nothing is fetched from anywhere.
      HTTPS_PROXY: "http://127.0.0.1:9",
      NO_PROXY: "127.0.0.1",
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#child;
    if (child && child.exitCode === null) {
      const exited = new Promise((resolve) => {
        child.once("exit", resolve);
      });
      child.kill("SIGKILL");
      await exited;
    }
    rmSync(this.#root, { recursive: true, force: true });
  }
}

const program = {
  name: "shop",
  runtime: "yaml",
  config: { password: { type: "string" } },
  resources: { kept: { type: "pulumi:index:Stash", properties: { input: "hello" } } },
  outputs: { greeting: "${kept.output}", password: { "fn::secret": "canary-output" } },
};

const request: PrepareRequest = {
  // JSON is YAML.
  source: { kind: "files", files: { "Pulumi.yaml": JSON.stringify(program) } },
  stacks: [
    {
      name: "dev",
      create: true,
      config: [{ key: "shop:password", value: { from: "value", value: "canary-config" }, secret: true }],
      environments: [],
    },
  ],
};

test("prepare, preview, up, destroy and up again with the real CLI", async () => {
  await using world = await World.make();
  await using agent = new AgentProcess();
  const workspace = { namespace: world.namespace.name, name: "web" };
  const port = await agent.start(world.authority, workspace);
  await world.workspace("web");
  await world.setReady("web", { address: `127.0.0.1:${port}` });
  const asked = preparations({ authority: world.authority, wake: () => undefined });
  const { metadata } = await world.client.get(builtin.pods, world.ref("web-workspace-0"));
  const pod: AgentPod = { workspace, uid: metadata.uid ?? "", restarts: 0, ip: "127.0.0.1", port };
  world.unprepared = (unprepared) => asked.renew(unprepared);
  const prepared = await waitFor(
    () => {
      const preparation = asked.ensure(pod, request);
      return preparation.state === "done" && preparation.result;
    },
    { timeoutMs: 60_000, what: "the workspace to be prepared" },
  );
  expect(prepared).toMatchObject({ ok: true, prepared: { project: { name: "shop", runtime: "yaml" } } });
  const operator = world.operator();

  await world.update("look", { type: "preview" });
  const look = await world.until("look", succeeded);
  expect(look.status?.summary).toContain("to create");
  expect(look.status?.stdout?.text).toContain("kept");

  await world.update("make");
  const made = await world.until("make", succeeded);
  expect(made.status?.changes?.["create"]).toBeGreaterThan(0);
  const secret = await world.secret("make-stack-outputs");
  const outputs = secret ? readOutputs(secret) : [];
  expect(outputs.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual([
    { name: "greeting", secret: false, json: '"hello"' },
    { name: "password", secret: true, json: '"canary-output"' },
  ]);

  await world.update("end", { type: "destroy", remove: true });
  const end = await world.until("end", succeeded);
  expect(end.status?.changes?.["delete"]).toBeGreaterThan(0);

  // The stack is gone with its settings: both are made anew in the same pod.
  await world.update("anew");
  const anew = await world.until("anew", succeeded);
  expect(anew.status?.changes?.["create"]).toBeGreaterThan(0);

  expect(JSON.stringify([look, made, end, operator.events])).not.toContain("canary");
  await asked.stop();
}, 180_000);

test("a program that fails is reported in its own words", async () => {
  await using world = await World.make();
  await using agent = new AgentProcess();
  const workspace = { namespace: world.namespace.name, name: "web" };
  const port = await agent.start(world.authority, workspace);
  await world.workspace("web");
  await world.setReady("web", { address: `127.0.0.1:${port}` });
  const broken = { ...program, resources: { kept: { type: "pulumi:index:Nonsense" } }, outputs: {} };
  const source = { kind: "files", files: { "Pulumi.yaml": JSON.stringify(broken) } } as const;
  const asked = preparations({ authority: world.authority, wake: () => undefined });
  const pod: AgentPod = { workspace, uid: "any", restarts: 0, ip: "127.0.0.1", port };
  await waitFor(() => asked.ensure(pod, { ...request, source }).state === "done", { timeoutMs: 60_000 });
  world.operator();
  await world.update("broken");
  const done = await world.until("broken", { Failed: "True/UpdateFailed" });
  expect(done.status?.message).toContain("Nonsense");
  await asked.stop();
}, 120_000);
