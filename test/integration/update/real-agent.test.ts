/** The Update controller with the real agent in a process of its own, and the real CLI. */
import { expect, test } from "bun:test";
import { builtin } from "@pko/kube";
import { preparations, readOutputs, type AgentPod } from "@pko/operator";
import type { PrepareRequest } from "@pko/rpc";
import { waitFor } from "@pko/testkit";

import { AgentProcess } from "./agent-process.ts";
import { World } from "./harness.ts";

const succeeded = { Progressing: "False/Complete", Failed: "False/UpdateSucceeded", Complete: "True/Updated" };

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

test("Updates in a Workspace that lists no stacks run on stacks that exist, and create none", async () => {
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
  const { config: _, ...plain } = program;
  const source = { kind: "files", files: { "Pulumi.yaml": JSON.stringify(plain) } } as const;
  const isPrepared = (stacks: PrepareRequest["stacks"]) => () => {
    const preparation = asked.ensure(pod, { source, stacks });
    return preparation.state === "done" && preparation.result.ok;
  };
  // Somebody has created the stack before.
  await waitFor(isPrepared([{ name: "dev", create: true, config: [], environments: [] }]), { timeoutMs: 60_000 });
  await waitFor(isPrepared([]), { timeoutMs: 60_000 });
  world.operator();

  await world.update("make");
  expect((await world.until("make", succeeded)).status?.changes?.["create"]).toBeGreaterThan(0);
  await world.update("typo", { stackName: "dve" });
  const remedy = "add it to spec.stacks of the Workspace with create: true";
  const typo = await world.until("typo", { Failed: "True/UpdateFailed", Complete: "True/UpdateFailed" });
  expect(typo.status).toMatchObject({ errorClass: "stackNotFound" });
  expect(typo.status?.message).toContain(remedy);
  await world.update("end", { type: "destroy", remove: true });
  await world.until("end", succeeded);
  // The workspace is prepared again for it, and the stack stays removed.
  await world.update("anew");
  expect((await world.until("anew", { Failed: "True/UpdateFailed" })).status?.message).toContain(remedy);
  await asked.stop();
}, 180_000);
