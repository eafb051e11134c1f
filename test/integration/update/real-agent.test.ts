/** The Update controller with the real agent in a separate process, and the real CLI. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { UpdateRecordContent } from "@pko/api";
import { builtin } from "@pko/kube";
import { preparations, readOutputs, type AgentPod } from "@pko/operator";
import { decodeContent, type RecordContent } from "@pko/records";
import { workspaceServerName, type PrepareRequest } from "@pko/rpc";
import { connectAgent } from "@pko/rpc/client";
import { waitFor } from "@pko/testkit";

import { Gate, gatedProgram } from "../agent/gate.ts";
import { AgentProcess } from "./agent-process.ts";
import { UpdateScene } from "./scene.ts";

const succeeded = { Progressing: "False/Complete", Failed: "False/UpdateSucceeded", Complete: "True/Updated" };

const program = {
  name: "shop",
  runtime: "yaml",
  config: { password: { type: "string" } },
  resources: {
    kept: { type: "pulumi:index:Stash", properties: { input: "hello" } },
    hidden: { type: "pulumi:index:Stash", properties: { input: "the password is ${password}" } },
  },
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

/** Starts the agent of a Workspace, which is ready. */
async function startAgent(scene: UpdateScene, agent: AgentProcess): Promise<AgentPod> {
  const workspace = { namespace: scene.namespace, name: "web" };
  const port = await agent.start(scene.ca, workspace);
  await scene.workspace("web");
  await scene.setReady("web", { address: `127.0.0.1:${port}` });
  const { metadata } = await scene.client.get(builtin.pods, scene.ref("web-workspace-0"));
  return { workspace, uid: metadata.uid ?? "", restarts: 0, ip: "127.0.0.1", port };
}

interface DecodedRecord {
  readonly record: UpdateRecordContent;
  readonly content: RecordContent | undefined;
}

/** By name. */
async function recordsOf(scene: UpdateScene): Promise<DecodedRecord[]> {
  const all = await scene.records();
  const decoded = all.map(async ({ record }) => ({ record, content: await decodeContent(record.content ?? "") }));
  return (await Promise.all(decoded)).toSorted((a, b) => (a.record.updateName < b.record.updateName ? -1 : 1));
}

test("prepare, preview, up, destroy and up again with the real CLI", async () => {
  await using scene = await UpdateScene.open();
  await using agent = new AgentProcess();
  const pod = await startAgent(scene, agent);
  const preparing = preparations({ ca: scene.ca, wake: () => undefined });
  const prepared = await waitFor(
    () => {
      const preparation = preparing.ensure(pod, request);
      return preparation.state === "done" && preparation.result;
    },
    { timeoutMs: 60_000, what: "the workspace to be prepared" },
  );
  expect(prepared).toMatchObject({ ok: true, prepared: { project: { name: "shop", runtime: "yaml" } } });
  const operator = scene.operator({ preparations: preparing });

  await scene.update("first-preview", { type: "preview" });
  const preview = await scene.until("first-preview", succeeded);
  expect(preview.status?.summary).toContain("to create");
  expect(preview.status?.stdout?.text).toContain("kept");

  await scene.update("create");
  const created = await scene.until("create", succeeded);
  expect(created.status?.changes?.["create"]).toBeGreaterThan(0);
  const secret = await scene.secret("create-stack-outputs");
  const outputs = secret ? readOutputs(secret) : [];
  expect(outputs.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual([
    { name: "greeting", secret: false, json: '"hello"' },
    { name: "password", secret: true, json: '"canary-output"' },
  ]);

  await scene.update("end", { type: "destroy", remove: true });
  const end = await scene.until("end", succeeded);
  expect(end.status?.changes?.["delete"]).toBeGreaterThan(0);

  // The stack and its settings were removed: both are created again in the same pod.
  await scene.update("again");
  const again = await scene.until("again", succeeded);
  expect(again.status?.changes?.["create"]).toBeGreaterThan(0);

  const records = await recordsOf(scene);
  expect(records.map(({ record: { updateName, type, result } }) => `${updateName}: ${type} ${result}`)).toEqual([
    "again: up succeeded",
    "create: up succeeded",
    "end: destroy succeeded",
    "first-preview: preview succeeded",
  ]);
  for (const {
    content,
    record: { versions, updateName },
  } of records) {
    expect([updateName, content?.events.length]).not.toEqual([updateName, 0]);
    expect(versions).toMatchObject({ operator: expect.any(String) as string, pulumi: expect.any(String) as string });
  }
  const urns = records.find(({ record }) => record.updateName === "create")?.content?.resources.map(({ urn }) => urn);
  expect(urns?.filter((urn) => /::(kept|hidden)$/.test(urn))).toHaveLength(2);

  // The log is the feed.
  expect(JSON.stringify([preview, created, end, operator.events, records, agent.log])).not.toContain("canary");
  await preparing.stop();
}, 400_000);

test("an Update deploys what its operator has requested, although the agent has prepared an outdated request since", async () => {
  await using scene = await UpdateScene.open();
  await using agent = new AgentProcess();
  const pod = await startAgent(scene, agent);
  const { ip: host, port = 0, workspace } = pod;
  const sender = connectAgent({
    address: { host, port, serverName: workspaceServerName(workspace) },
    credentials: () => scene.ca.operatorCredentials(),
  });
  const requestFor = (word: string): PrepareRequest => {
    const files = { "Pulumi.yaml": JSON.stringify({ name: "shop", runtime: "yaml", outputs: { word } }) };
    return { source: { kind: "files", files }, stacks: [{ name: "dev", create: true, config: [], environments: [] }] };
  };
  const preparing = preparations({ ca: scene.ca, wake: () => undefined });
  const isPrepared = (): boolean => preparing.ensure(pod, requestFor("current")).state === "done";
  await waitFor(isPrepared, { timeoutMs: 60_000, what: "the workspace to be prepared" });
  expect(await sender.prepare(requestFor("outdated"))).toMatchObject({ ok: true, value: { ok: true } });

  scene.operator({ preparations: preparing });
  await scene.update("deploy");
  // The workspace is prepared once more before.
  await scene.until("deploy", succeeded, 150_000);
  const secret = await scene.secret("deploy-stack-outputs");
  expect(secret && readOutputs(secret)).toEqual([{ name: "word", secret: false, json: '"current"' }]);
  await preparing.stop();
}, 400_000);

test("a program that fails is reported with its own messages", async () => {
  await using scene = await UpdateScene.open();
  await using agent = new AgentProcess();
  const pod = await startAgent(scene, agent);
  const broken = { ...program, resources: { kept: { type: "pulumi:index:Nonsense" } }, outputs: {} };
  const source = { kind: "files", files: { "Pulumi.yaml": JSON.stringify(broken) } } as const;
  const preparing = preparations({ ca: scene.ca, wake: () => undefined });
  await waitFor(() => preparing.ensure(pod, { ...request, source }).state === "done", { timeoutMs: 60_000 });
  scene.operator({ preparations: preparing });
  await scene.update("broken");
  const done = await scene.until("broken", { Failed: "True/UpdateFailed" });
  expect(done.status?.message).toContain("Nonsense");
  await preparing.stop();
}, 180_000);

test("an operation that hangs is stopped after its timeout, and the next one succeeds", async () => {
  await using scene = await UpdateScene.open();
  await using agent = new AgentProcess();
  const pod = await startAgent(scene, agent);
  const preparing = preparations({ ca: scene.ca, wake: () => undefined });
  const stacks = [{ name: "dev", create: true, config: [], environments: [] }];
  const isPrepared = () => preparing.ensure(pod, { source: gatedProgram, stacks }).state === "done";
  await waitFor(isPrepared, { timeoutMs: 60_000 });
  const gate = new Gate(join(agent.share, "workspace"));
  const operator = scene.operator({ preparations: preparing });

  await scene.update("hung", { silenceTimeoutSeconds: 3 });
  const hung = await scene.until("hung", { Failed: "True/TimedOut", Complete: "True/TimedOut" });
  expect(hung.status).toMatchObject({
    errorClass: "timedOut",
    message: expect.stringMatching(/^the run was stopped after 3 s without output/) as unknown,
  });
  await waitFor(() => operator.events.length > 0, { what: "the event, which follows the status" });
  expect(operator.events).toMatchObject([
    { reason: "UpdateFailed", message: "The up failed: the run was stopped after 3 s without output" },
  ]);
  await scene.update("next");
  await gate.open("open");
  await scene.until("next", succeeded);
  await preparing.stop();
}, 180_000);

test("Updates in a Workspace that lists no stacks run on stacks that exist, and create none", async () => {
  await using scene = await UpdateScene.open();
  await using agent = new AgentProcess();
  const pod = await startAgent(scene, agent);
  const preparing = preparations({ ca: scene.ca, wake: () => undefined });
  const { config: _, ...rest } = program;
  const plain = { ...rest, resources: { kept: program.resources.kept } };
  const source = { kind: "files", files: { "Pulumi.yaml": JSON.stringify(plain) } } as const;
  const isPrepared = (stacks: PrepareRequest["stacks"]) => () => {
    const preparation = preparing.ensure(pod, { source, stacks });
    return preparation.state === "done" && preparation.result.ok;
  };
  // The stack was created before.
  await waitFor(isPrepared([{ name: "dev", create: true, config: [], environments: [] }]), { timeoutMs: 60_000 });
  await waitFor(isPrepared([]), { timeoutMs: 60_000 });
  scene.operator({ preparations: preparing });

  await scene.update("create");
  expect((await scene.until("create", succeeded)).status?.changes?.["create"]).toBeGreaterThan(0);
  await scene.update("typo", { stackName: "dve" });
  const remedy = "add it to the Workspace's spec.stacks";
  const typo = await scene.until("typo", { Failed: "True/UpdateFailed", Complete: "True/UpdateFailed" });
  expect(typo.status).toMatchObject({ errorClass: "stackNotFound" });
  expect(typo.status?.message).toContain(remedy);
  await scene.update("end", { type: "destroy", remove: true });
  await scene.until("end", succeeded);
  // The workspace is prepared again for it, and the stack stays removed.
  await scene.update("again");
  expect((await scene.until("again", { Failed: "True/UpdateFailed" })).status?.message).toContain(remedy);
  await preparing.stop();
}, 180_000);
