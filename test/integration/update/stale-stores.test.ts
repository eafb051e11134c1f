/** Decisions that the API server must confirm, and results that it rejects. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { builtin, resource, type ApiObject } from "@pko/kube";
import { faultProxy, waitFor } from "@pko/testkit";
import type { ResourceQuota } from "kubernetes-types/core/v1";

import { workspaces, UpdateScene } from "./scene.ts";

setDefaultTimeout(180_000);

const succeeded = { Progressing: "False/Complete", Failed: "False/UpdateSucceeded", Complete: "True/Updated" };
const failed = { Failed: "True/UpdateFailed", Complete: "True/UpdateFailed" };

async function runStarted(scene: UpdateScene, runId: string): Promise<void> {
  await waitFor(() => [...scene.agents].some((agent) => agent.started.includes(runId)), { what: "the run to start" });
}

test("an operator whose store does not show the pod of a run reads it, and does not report the run as lost", async () => {
  await using scene = await UpdateScene.open();
  await using proxy = await faultProxy(scene.rights.credentials);
  const delayed = Promise.withResolvers<void>();
  proxy.onEvent(async (_, { resource: plural }) => {
    if (plural === "pods") await delayed.promise;
    return "pass" as const;
  });
  const behind = scene.rights.connect(proxy.credentials);
  const watching = proxy.nextRequest(({ verb, resource: plural }) => verb === "watch" && plural === "pods");
  scene.operator({ client: behind, reading: behind });
  await watching;
  const agent = await scene.workspace("web");
  const ahead = scene.operator();
  const uid = await scene.update("long");
  await runStarted(scene, uid);
  const isRead = (): boolean =>
    proxy.requests.some(({ verb, resource: plural }) => verb === "get" && plural === "pods");
  await waitFor(isRead, { timeoutMs: 45_000, what: "the pod to be read" });
  await ahead.stop();
  delayed.resolve();
  agent.finish(uid);
  await scene.until("long", succeeded);
  expect(agent.started).toEqual([uid]);
});

describe("an Update does not start in a pod", () => {
  test("of another controller, but in the workspace's pod that follows", async () => {
    await using scene = await UpdateScene.open();
    const theirs = await scene.workspace("web");
    await scene.disownPod("web", { name: "other", uid: "another-uid" });
    scene.operator();
    const uid = await scene.update("first");
    const waiting = await scene.until("first", { Progressing: "False/WorkspaceNotReady" });
    expect(waiting.status?.podUid).toBeUndefined();
    await scene.deletePod("web");
    const ours = await scene.pod("web");
    await scene.setReady("web", { address: `127.0.0.1:${ours.port}` });
    await runStarted(scene, uid);
    expect([theirs.started, ours.started]).toEqual([[], [uid]]);
  });

  test("of a StatefulSet that had the name of the workspace's", async () => {
    await using scene = await UpdateScene.open();
    await using proxy = await faultProxy(scene.rights.credentials);
    const agent = await scene.workspace("web");
    await scene.disownPod("web", { name: "web-workspace", uid: "another-uid" });
    scene.operator({ client: scene.rights.connect(proxy.credentials) });
    await scene.update("first");
    const checks = () => proxy.requests.filter(({ resource: plural }) => plural === "statefulsets").length;
    await waitFor(() => checks() > 1, { timeoutMs: 45_000, what: "the owner of the pod to be checked twice" });
    expect((await scene.find("first"))?.status?.podUid).toBeUndefined();
    expect(agent.started).toEqual([]);
  });
});

describe("an Update for a stack that its Workspace does not have", () => {
  const spec = { stacks: [{ name: "dev" }] };

  test("fails with the reason, and those that wait behind it run", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web", spec);
    scene.operator();
    await scene.update("a-typo", { stackName: "dve" });
    const uid = await scene.update("b-right");
    const done = await scene.until("a-typo", { Failed: "True/Failed", Complete: "True/Failed" });
    expect(done.status?.message).toContain("spec.stackName: the Workspace web has no stack dve, only dev");
    await runStarted(scene, uid);
    agent.finish(uid);
    await scene.until("b-right", succeeded);
  });

  test("waits while the latest spec of the Workspace is not processed", async () => {
    await using scene = await UpdateScene.open();
    await scene.workspace("web", spec);
    const patch = { type: "merge", body: { status: { observedGeneration: 0 } } } as const;
    await scene.client.patch(workspaces, scene.ref("web"), { patch, subresource: "status" });
    scene.operator();
    await scene.update("early", { stackName: "prod" });
    await scene.until("early", { Progressing: "False/WorkspaceNotReady" });
  });
});

describe("a run that has ended is reported", () => {
  test("with every character that it has printed", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    scene.operator();
    const uid = await scene.update("strange");
    await runStarted(scene, uid);
    const message = "it printed \u007f\u0080\u0085\u009f\u2028\ufffe\uffff\u0000";
    agent.finish(uid, { outcome: "failed", error: { class: "programError", message, lines: ["half \ud83d"] } });
    const done = await scene.until("strange", failed);
    expect(done.status?.message).toBe(`${message}\nhalf \ufffd`);
  });

  test("without its messages if the API server rejects them", async () => {
    await using scene = await UpdateScene.open();
    await using proxy = await faultProxy(scene.rights.credentials);
    proxy.on(({ body }) => (body.includes("unspeakable") ? { status: 400 } : undefined));
    const agent = await scene.workspace("web");
    const operator = scene.operator({ client: scene.rights.connect(proxy.credentials) });
    const uid = await scene.update("rude");
    await runStarted(scene, uid);
    const error = { class: "conflict", message: "unspeakable", lines: [] } as const;
    agent.finish(uid, { outcome: "failed", error: { ...error, lines: [] } });
    const done = await scene.until("rude", failed);
    expect(done.status?.message).toContain("Its messages could not be stored");
    expect(done.status).toMatchObject({ errorClass: "conflict", endTime: "2040-01-01T00:00:00Z" });
    await waitFor(async () => (await scene.find("rude"))?.metadata.finalizers === undefined);
    expect(operator.events.map(({ reason }) => reason)).toEqual([
      "UpdateFailed",
      "StackOutputRetrievalFailure",
      "RecordNotStored",
    ]);
  });

  test("even if a quota prevents the Secret of its outputs", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    agent.outputs.push({ name: "url", value: "http://x", secret: false, known: true });
    const operator = scene.operator();
    const uid = await scene.update("crowded");
    await runStarted(scene, uid);
    await preventSecrets(scene);
    agent.finish(uid);
    const done = await scene.until("crowded", succeeded);
    expect(done.status?.message).toMatch(/The Secret crowded-stack-outputs could not be created: .*quota/);
    expect(await scene.secret("crowded-stack-outputs")).toBeUndefined();
    // Readers must see that the outputs are lost, and not that there are none.
    expect(done.status?.outputs).toBe("crowded-stack-outputs");
    await waitFor(() => operator.events.length === 2, { what: "the events, which follow the status" });
    expect(operator.events).toMatchObject([
      { reason: "UpdateSucceeded" },
      { type: "Warning", reason: "StackOutputRetrievalFailure" },
    ]);
  });
});

async function preventSecrets(scene: UpdateScene): Promise<void> {
  scene.rights.expectForbidden(/exceeded quota: none/);
  const quotas = resource<ApiObject<ResourceQuota>>({
    apiVersion: "v1",
    kind: "ResourceQuota",
    plural: "resourcequotas",
    namespaced: true,
  });
  const hard = { secrets: "0" };
  const metadata = scene.ref("none");
  await scene.client.create(quotas, { apiVersion: "v1", kind: "ResourceQuota", metadata, spec: { hard } });
  const patch = { type: "merge", body: { status: { hard, used: { secrets: "0" } } } } as const;
  await scene.client.patch(quotas, metadata, { patch, subresource: "status" });
  const probe = { apiVersion: "v1", kind: "Secret", metadata: scene.ref("probe") };
  // The API server enforces quotas with a delay.
  await waitFor(
    async () =>
      await scene.client.create(builtin.secrets, probe, { dryRun: true }).then(
        () => false,
        () => true,
      ),
    { what: "the quota to be enforced" },
  );
}
