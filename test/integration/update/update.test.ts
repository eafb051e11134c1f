import { describe, expect, test } from "bun:test";
import type { Client } from "@pko/kube";
import { updateFinalizer } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { printedRow } from "../harness/printed.ts";
import { conditionsOf, updates, UpdateScene } from "./scene.ts";

const progressing = { Progressing: "True/Progressing" };
const succeeded = { Progressing: "False/Complete", Failed: "False/UpdateSucceeded", Complete: "True/Updated" };

async function runStarted(scene: UpdateScene, runId: string): Promise<void> {
  await waitFor(() => [...scene.agents].some((agent) => agent.started.includes(runId)), { what: "the run to start" });
}

describe("an Update", () => {
  test("runs, reports its progress, stores its outputs, and has its finalizer removed", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    agent.outputs.push(
      { name: "url", value: "http://x", secret: false, known: true },
      { name: "password", value: "canary-1", secret: true, known: true },
      { name: "a name/with more", value: { deep: [1] }, secret: false, known: true },
    );
    const operator = scene.operator();
    const uid = await scene.update("first");
    await runStarted(scene, uid);
    const running = await scene.until("first", progressing);
    expect(running.metadata.finalizers).toEqual([updateFinalizer]);
    agent.emit(uid, { kind: "permalink", url: "https://app.example/1" });
    agent.emit(uid, { kind: "resource", phase: "finished", op: "create", urn: "urn:a", resourceType: "t" });
    await waitFor(async () => (await scene.find("first"))?.status?.progress?.created === 1);
    agent.finish(uid);
    const done = await scene.until("first", succeeded);
    expect(done.status).toMatchObject({
      outputs: "first-stack-outputs",
      permalink: "https://app.example/1",
      summary: "2 created, 1 unchanged",
      endTime: "2040-01-01T00:00:00Z",
      projectInfo: { name: "shop", runtime: "yaml" },
    });
    expect(JSON.stringify(done)).not.toContain("canary");
    const secret = await scene.secret("first-stack-outputs");
    expect(secret?.immutable).toBe(true);
    expect(secret?.metadata.annotations?.["pulumi.com/secrets"]).toBe('["password"]');
    expect(Buffer.from(secret?.data?.["url"] ?? "", "base64").toString()).toBe('"http://x"');
    await waitFor(async () => (await scene.find("first"))?.metadata.finalizers === undefined);
    expect(operator.events.map(({ reason }) => reason)).toEqual(["UpdateSucceeded"]);
    expect(JSON.stringify(operator.events)).not.toContain("canary");
    expect(scene.runs?.find({ uid: done.status?.podUid ?? "" }, uid)).toBeUndefined();
  });

  test("waits for its Workspace, and for its pod", async () => {
    await using scene = await UpdateScene.open();
    scene.operator();
    const uid = await scene.update("early");
    await scene.until("early", { Progressing: "False/WorkspaceNotFound", Complete: "False/WorkspaceNotFound" });
    const agent = await scene.workspace("web", {}, { idle: true });
    await scene.until("early", { Progressing: "False/WorkspaceNotReady" });
    expect(agent.started).toEqual([]);
    await scene.setReady("web", { address: `127.0.0.1:${agent.port}` });
    await runStarted(scene, uid);
  });

  test("fails with the program's own messages", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    scene.operator();
    const uid = await scene.update("broken");
    await runStarted(scene, uid);
    const error = { class: "programError", message: "The program failed.", lines: ["error: no such bucket"] } as const;
    agent.finish(uid, { outcome: "failed", error: { ...error, lines: [...error.lines] } });
    const done = await scene.until("broken", { Failed: "True/UpdateFailed", Complete: "True/UpdateFailed" });
    expect(done.status?.message).toBe("The program failed.\nerror: no such bucket");
    expect(done.status?.errorClass).toBe("programError");
    const printed = await printedRow({ kinds: "updates", ...scene.ref("broken") });
    expect(printed).toMatchObject({ PROGRESSING: "False", FAILED: "True", COMPLETE: "True" });
  });

  test("with an invalid spec fails with the reason", async () => {
    await using scene = await UpdateScene.open();
    scene.operator();
    await scene.update("nonsense", { type: "explode" });
    const done = await scene.until("nonsense", { Failed: "True/Failed", Complete: "True/Failed" });
    expect(done.status?.message).toContain("spec.type");
  });

  test("is deleted when its TTL has expired", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    const operator = scene.operator();
    const uid = await scene.update("brief", { ttlAfterCompleted: "1s" });
    await runStarted(scene, uid);
    agent.finish(uid, { finishedAt: new Date().toISOString() });
    await waitFor(async () => (await scene.find("brief")) === undefined, { what: "it to be deleted" });
    // The event follows the deletion.
    const reasons = (): string => operator.events.map(({ reason }) => reason).join();
    await waitFor(() => reasons() === "UpdateSucceeded,UpdateExpired", { what: "both events" });
  });

  test("stores a long output in a Secret", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    scene.operator();
    const uid = await scene.update("verbose", { type: "preview" });
    await runStarted(scene, uid);
    const tail = "+ create\n".repeat(5_000);
    agent.finish(uid, { output: { tail, bytes: tail.length, truncated: false } });
    const done = await scene.until("verbose", succeeded);
    expect(done.status?.stdout).toMatchObject({ truncated: true, secretName: "verbose-stdout" });
    const secret = await scene.secret("verbose-stdout");
    expect(Buffer.from(secret?.data?.["stdout"] ?? "", "base64").toString()).toBe(tail);
  });
});

describe("an Update runs at most once", () => {
  test("an operator that restarts attaches to the run", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    const first = scene.operator();
    const uid = await scene.update("long");
    await runStarted(scene, uid);
    agent.emit(uid, { kind: "resource", phase: "finished", op: "create", urn: "urn:a", resourceType: "t" });
    await waitFor(async () => (await scene.find("long"))?.status?.progress?.created === 1);
    await first.stop();
    agent.emit(uid, { kind: "resource", phase: "finished", op: "create", urn: "urn:b", resourceType: "t" });
    scene.operator();
    await waitFor(async () => (await scene.find("long"))?.status?.progress?.created === 2);
    agent.finish(uid);
    await scene.until("long", succeeded);
    expect(agent.started).toEqual([uid]);
  });

  test("a run that ended while no operator ran is reported", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    const first = scene.operator();
    const uid = await scene.update("long");
    await runStarted(scene, uid);
    await scene.until("long", progressing);
    await first.stop();
    agent.finish(uid);
    scene.operator();
    await scene.until("long", succeeded);
    expect(agent.started).toEqual([uid]);
  });

  test("a pod that is replaced during the run ends it, and it is not started again", async () => {
    await using scene = await UpdateScene.open();
    const old = await scene.workspace("web");
    scene.operator();
    const uid = await scene.update("long");
    await runStarted(scene, uid);
    await old.close();
    await scene.deletePod("web");
    const next = await scene.pod("web");
    await scene.setReady("web", { address: `127.0.0.1:${next.port}` });
    const done = await scene.until("long", { Failed: "True/Aborted", Complete: "True/Aborted" });
    expect(done.status?.message).toContain("pod");
    const another = await scene.update("another");
    await runStarted(scene, another);
    expect(next.started).toEqual([another]);
  });

  test("a pod that is replaced while no operator runs ends it as well", async () => {
    await using scene = await UpdateScene.open();
    const old = await scene.workspace("web");
    const first = scene.operator();
    const uid = await scene.update("long");
    await runStarted(scene, uid);
    await scene.until("long", progressing);
    await first.stop();
    await old.close();
    await scene.deletePod("web");
    const next = await scene.pod("web");
    await scene.setReady("web", { address: `127.0.0.1:${next.port}` });
    scene.operator();
    await scene.until("long", { Failed: "True/Aborted" });
    expect(next.started).toEqual([]);
  });

  test("an agent that restarts reports the runs that it has recorded", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    scene.operator();
    const uid = await scene.update("long");
    await runStarted(scene, uid);
    await agent.close();
    await scene.until("long", { Progressing: "True/TransientFailure" });
    agent.finish(uid, { outcome: "interrupted" });
    await agent.listen(scene.ca);
    await scene.until("long", { Failed: "True/Aborted" });
    expect(agent.started).toEqual([uid]);
  });

  test("one at a time in a Workspace, in the order of their creation", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    scene.operator();
    const uids = [];
    for (const name of ["a", "b", "c"]) uids.push(await scene.update(name));
    for (const [index, uid] of uids.entries()) {
      await runStarted(scene, uid);
      expect(agent.started).toEqual(uids.slice(0, index + 1));
      agent.finish(uid);
    }
    await scene.until("c", succeeded);
  });

  test("a request to an agent that is busy or not prepared is repeated", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    agent.refusal = "busy";
    let renewals = 0;
    scene.operator({ preparations: { preparationOf: () => undefined, renew: () => renewals++ } });
    const uid = await scene.update("patient");
    await scene.until("patient", { Progressing: "True/WorkspaceNotReady" });
    const requests = (): number => agent.calls.get("start") ?? 0;
    const whileBusy = requests();
    await waitFor(() => requests() > whileBusy, { what: "the request to a busy agent to be repeated" });

    agent.refusal = "unprepared";
    await waitFor(() => renewals >= 1, { what: "the agent to be prepared again" });
    const whileUnprepared = requests();
    await waitFor(() => requests() > whileUnprepared, { what: "the request to an unprepared agent to be repeated" });
    expect(agent.started).toEqual([]);
    agent.refusal = undefined;
    await runStarted(scene, uid);
    agent.finish(uid);
    await scene.until("patient", succeeded);
  });

  test("waits for a Workspace that has changed since it was last observed", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    const changed = { spec: { stacks: [{ name: "dev" }] } };
    let reads = 0;
    const client: Client = {
      ...scene.client,
      create: (resource, object, options) => scene.client.create(resource, object, options),
      apply: (resource, body, options) => scene.client.apply(resource, body, options),
      patch: (resource, ref, change) => scene.client.patch(resource, ref, change),
      find: async (resource, ref, options) => {
        // The stores receive the change a moment after this call.
        if (resource.kind === "Workspace" && reads++ === 0) {
          await scene.client.patch(resource, ref, { patch: { type: "merge", body: changed } });
        }
        return await scene.client.find(resource, ref, options);
      },
    };
    scene.operator({ client });
    await scene.update("eager");
    await scene.until("eager", { Progressing: "False/WorkspaceNotReady" });
    expect(agent.started).toEqual([]);
  });

  test("fails if the agent rejects the operation", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    agent.refusal = "invalidRequest";
    scene.operator();
    await scene.update("refused");
    await scene.until("refused", { Failed: "True/UpdateFailed" });
  });

  test("is not started again if an earlier operator started it", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    await scene.update("old");
    const patch = { type: "merge", body: { status: { startTime: "2030-01-01T00:00:00Z" } } } as const;
    await scene.client.patch(updates, scene.ref("old"), { patch, subresource: "status" });
    scene.operator();
    await scene.until("old", { Failed: "True/Aborted" });
    expect(agent.started).toEqual([]);
  });
});

describe("an Update that is deleted", () => {
  const deleted = async (scene: UpdateScene, name: string): Promise<void> => {
    await waitFor(async () => (await scene.find(name)) === undefined, { what: `${name} to be deleted` });
  };

  test("has its run cancelled, and is removed when the run has ended", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    agent.stopsOnCancel = false;
    scene.operator();
    const uid = await scene.update("unwanted");
    await runStarted(scene, uid);
    await scene.until("unwanted", progressing);
    await scene.client.delete(updates, scene.ref("unwanted"));
    await waitFor(() => agent.isCancelled(uid), { what: "the run to be cancelled" });
    expect(conditionsOf(await scene.find("unwanted"))).toMatchObject(progressing);
    agent.finish(uid, { outcome: "cancelled" });
    await deleted(scene, "unwanted");
  });

  test("has its run cancelled even if no operator ran at that moment", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    const first = scene.operator();
    const uid = await scene.update("unwanted");
    await runStarted(scene, uid);
    await scene.until("unwanted", progressing);
    await first.stop();
    await scene.client.delete(updates, scene.ref("unwanted"));
    scene.operator();
    await deleted(scene, "unwanted");
    expect(agent.isCancelled(uid)).toBe(true);
    expect(agent.started).toEqual([uid]);
  });

  test("is not started if the agent was busy until then", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    agent.refusal = "busy";
    scene.operator();
    await scene.update("unwanted");
    await scene.until("unwanted", { Progressing: "True/WorkspaceNotReady" });
    await scene.client.delete(updates, scene.ref("unwanted"));
    await deleted(scene, "unwanted");
    agent.refusal = undefined;
    const uid = await scene.update("next");
    await runStarted(scene, uid);
    expect(agent.started).toEqual([uid]);
  });

  test("is removed immediately if its pod is deleted", async () => {
    await using scene = await UpdateScene.open();
    const agent = await scene.workspace("web");
    const first = scene.operator();
    const uid = await scene.update("unwanted");
    await runStarted(scene, uid);
    await first.stop();
    await agent.close();
    await scene.deletePod("web");
    await scene.client.delete(updates, scene.ref("unwanted"));
    scene.operator();
    await deleted(scene, "unwanted");
  });

  test("is removed with its namespace, with or without outputs", async () => {
    await using scene = await UpdateScene.open();
    scene.rights.expectForbidden(/because it is being terminated/);
    const agent = await scene.workspace("web");
    agent.outputs.push({ name: "url", value: "x", secret: false, known: true });
    scene.operator();
    const uid = await scene.update("doomed");
    await runStarted(scene, uid);
    await scene.until("doomed", progressing);
    await scene.client.delete(
      { apiVersion: "v1", kind: "Namespace", plural: "namespaces", namespaced: false },
      { name: scene.namespace },
    );
    await scene.client.delete(updates, scene.ref("doomed"));
    agent.finish(uid);
    await deleted(scene, "doomed");
  });
});
