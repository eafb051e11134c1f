/** Decisions that the API server must confirm, and results that it rejects. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { builtin, resource, type ApiObject } from "@pko/kube";
import { faultProxy, waitFor } from "@pko/testkit";
import type { ResourceQuota } from "kubernetes-types/core/v1";

import { workspaces, World } from "./harness.ts";

setDefaultTimeout(60_000);

const succeeded = { Progressing: "False/Complete", Failed: "False/UpdateSucceeded", Complete: "True/Updated" };
const failed = { Failed: "True/UpdateFailed", Complete: "True/UpdateFailed" };

async function runStarted(world: World, runId: string): Promise<void> {
  await waitFor(() => [...world.agents].some((agent) => agent.started.includes(runId)), { what: "the run to start" });
}

test("an operator whose store does not show the pod of a run reads it, and does not report the run as lost", async () => {
  await using world = await World.create();
  await using proxy = await faultProxy(world.rights.credentials);
  const delayed = Promise.withResolvers<void>();
  proxy.onEvent(async (_, { resource: plural }) => {
    if (plural === "pods") await delayed.promise;
    return "pass" as const;
  });
  const behind = world.rights.connect(proxy.credentials);
  const watching = proxy.nextRequest(({ verb, resource: plural }) => verb === "watch" && plural === "pods");
  world.operator(behind, undefined, behind);
  await watching;
  const agent = await world.workspace("web");
  const ahead = world.operator();
  const uid = await world.update("long");
  await runStarted(world, uid);
  const isRead = (): boolean =>
    proxy.requests.some(({ verb, resource: plural }) => verb === "get" && plural === "pods");
  await waitFor(isRead, { timeoutMs: 20_000, what: "the pod to be read" });
  await ahead.stop();
  delayed.resolve();
  agent.finish(uid);
  await world.until("long", succeeded);
  expect(agent.started).toEqual([uid]);
});

describe("an Update does not start in a pod", () => {
  test("of another controller, but in the workspace's pod that follows", async () => {
    await using world = await World.create();
    const theirs = await world.workspace("web");
    await world.disownPod("web", { name: "other", uid: "another-uid" });
    world.operator();
    const uid = await world.update("first");
    const waiting = await world.until("first", { Progressing: "False/WorkspaceNotReady" });
    expect(waiting.status?.podUid).toBeUndefined();
    await world.deletePod("web");
    const ours = await world.pod("web");
    await world.setReady("web", { address: `127.0.0.1:${ours.port}` });
    await runStarted(world, uid);
    expect([theirs.started, ours.started]).toEqual([[], [uid]]);
  });

  test("of a StatefulSet that had the name of the workspace's", async () => {
    await using world = await World.create();
    await using proxy = await faultProxy(world.rights.credentials);
    const agent = await world.workspace("web");
    await world.disownPod("web", { name: "web-workspace", uid: "another-uid" });
    world.operator(world.rights.connect(proxy.credentials));
    await world.update("first");
    const checks = () => proxy.requests.filter(({ resource: plural }) => plural === "statefulsets").length;
    await waitFor(() => checks() > 1, { timeoutMs: 20_000, what: "the owner of the pod to be checked twice" });
    expect((await world.find("first"))?.status?.podUid).toBeUndefined();
    expect(agent.started).toEqual([]);
  });
});

describe("an Update for a stack that its Workspace does not have", () => {
  const spec = { stacks: [{ name: "dev" }] };

  test("fails with the reason, and those that wait behind it run", async () => {
    await using world = await World.create();
    const agent = await world.workspace("web", spec);
    world.operator();
    await world.update("a-typo", { stackName: "dve" });
    const uid = await world.update("b-right");
    const done = await world.until("a-typo", { Failed: "True/Failed", Complete: "True/Failed" });
    expect(done.status?.message).toContain("spec.stackName: the Workspace web has no stack dve, only dev");
    await runStarted(world, uid);
    agent.finish(uid);
    await world.until("b-right", succeeded);
  });

  test("waits while the latest spec of the Workspace is not processed", async () => {
    await using world = await World.create();
    await world.workspace("web", spec);
    const patch = { type: "merge", body: { status: { observedGeneration: 0 } } } as const;
    await world.client.patch(workspaces, world.ref("web"), { patch, subresource: "status" });
    world.operator();
    await world.update("early", { stackName: "prod" });
    await world.until("early", { Progressing: "False/WorkspaceNotReady" });
  });
});

describe("a run that has ended is reported", () => {
  test("with every character that it has printed", async () => {
    await using world = await World.create();
    const agent = await world.workspace("web");
    world.operator();
    const uid = await world.update("strange");
    await runStarted(world, uid);
    const message = "it printed \u007f\u0080\u0085\u009f\u2028\ufffe\uffff\u0000";
    agent.finish(uid, { outcome: "failed", error: { class: "programError", message, lines: ["half \ud83d"] } });
    const done = await world.until("strange", failed);
    expect(done.status?.message).toBe(`${message}\nhalf \ufffd`);
  });

  test("without its messages if the API server rejects them", async () => {
    await using world = await World.create();
    await using proxy = await faultProxy(world.rights.credentials);
    proxy.on(({ body }) => (body.includes("unspeakable") ? { status: 400 } : undefined));
    const agent = await world.workspace("web");
    const operator = world.operator(world.rights.connect(proxy.credentials));
    const uid = await world.update("rude");
    await runStarted(world, uid);
    const error = { class: "conflict", message: "unspeakable", lines: [] } as const;
    agent.finish(uid, { outcome: "failed", error: { ...error, lines: [] } });
    const done = await world.until("rude", failed);
    expect(done.status?.message).toContain("Its messages could not be stored");
    expect(done.status).toMatchObject({ errorClass: "conflict", endTime: "2040-01-01T00:00:00Z" });
    await waitFor(async () => (await world.find("rude"))?.metadata.finalizers === undefined);
    expect(operator.events.map(({ reason }) => reason)).toEqual(["UpdateFailed", "StackOutputRetrievalFailure"]);
  });

  test("also if a quota prevents the Secret of its outputs", async () => {
    await using world = await World.create();
    const agent = await world.workspace("web");
    agent.outputs.push({ name: "url", value: "http://x", secret: false, known: true });
    const operator = world.operator();
    const uid = await world.update("crowded");
    await runStarted(world, uid);
    await preventSecrets(world);
    agent.finish(uid);
    const done = await world.until("crowded", succeeded);
    expect(done.status?.message).toMatch(/The Secret crowded-stack-outputs could not be created: .*quota/);
    expect(await world.secret("crowded-stack-outputs")).toBeUndefined();
    // Readers must see that the outputs are lost, and not that there are none.
    expect(done.status?.outputs).toBe("crowded-stack-outputs");
    await waitFor(() => operator.events.length === 2, { what: "the events, which follow the status" });
    expect(operator.events).toMatchObject([
      { reason: "UpdateSucceeded" },
      { type: "Warning", reason: "StackOutputRetrievalFailure" },
    ]);
  });
});

async function preventSecrets(world: World): Promise<void> {
  world.rights.expectForbidden(/exceeded quota: none/);
  const quotas = resource<ApiObject<ResourceQuota>>({
    apiVersion: "v1",
    kind: "ResourceQuota",
    plural: "resourcequotas",
    namespaced: true,
  });
  const hard = { secrets: "0" };
  const metadata = world.ref("none");
  await world.client.create(quotas, { apiVersion: "v1", kind: "ResourceQuota", metadata, spec: { hard } });
  const patch = { type: "merge", body: { status: { hard, used: { secrets: "0" } } } } as const;
  await world.client.patch(quotas, metadata, { patch, subresource: "status" });
  const probe = { apiVersion: "v1", kind: "Secret", metadata: world.ref("probe") };
  // The API server enforces quotas with a delay.
  await waitFor(
    async () =>
      await world.client.create(builtin.secrets, probe, { dryRun: true }).then(
        () => false,
        () => true,
      ),
    { what: "the quota to be enforced" },
  );
}
