import { describe, expect, test } from "bun:test";
import type { Client } from "@pko/kube";
import { updateFinalizer } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { conditionsOf, updates, World } from "./harness.ts";

const progressing = { Progressing: "True/Progressing" };
const succeeded = { Progressing: "False/Complete", Failed: "False/UpdateSucceeded", Complete: "True/Updated" };

/** Until the agent has begun the run. */
async function begun(world: World, runId: string): Promise<void> {
  await waitFor(() => [...world.agents].some((agent) => agent.begun.includes(runId)), { what: "the run to begin" });
}

describe("an Update", () => {
  test("runs, tells its progress, keeps its outputs, and is let go", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    agent.outputs.push(
      { name: "url", value: "http://x", secret: false, known: true },
      { name: "password", value: "canary-1", secret: true, known: true },
      { name: "a name/with more", value: { deep: [1] }, secret: false, known: true },
    );
    const operator = world.operator();
    const uid = await world.update("first");
    await begun(world, uid);
    const guarded = await world.until("first", progressing);
    expect(guarded.metadata.finalizers).toEqual([updateFinalizer]);
    agent.tell(uid, { kind: "permalink", url: "https://app.example/1" });
    agent.tell(uid, { kind: "resource", phase: "finished", op: "create", urn: "urn:a", resourceType: "t" });
    await waitFor(async () => (await world.find("first"))?.status?.progress?.created === 1);
    agent.finish(uid);
    const done = await world.until("first", succeeded);
    expect(done.status).toMatchObject({
      outputs: "first-stack-outputs",
      permalink: "https://app.example/1",
      summary: "2 created, 1 unchanged",
      endTime: "2040-01-01T00:00:00Z",
      projectInfo: { name: "shop", runtime: "yaml" },
    });
    expect(JSON.stringify(done)).not.toContain("canary");
    const secret = await world.secret("first-stack-outputs");
    expect(secret?.immutable).toBe(true);
    expect(secret?.metadata.annotations?.["pulumi.com/secrets"]).toBe('["password"]');
    expect(Buffer.from(secret?.data?.["url"] ?? "", "base64").toString()).toBe('"http://x"');
    await waitFor(async () => (await world.find("first"))?.metadata.finalizers === undefined);
    expect(operator.events.map(({ reason }) => reason)).toEqual(["UpdateSucceeded"]);
    expect(JSON.stringify(operator.events)).not.toContain("canary");
    expect(operator.runs.look(done.status?.podUid ?? "", uid)).toBeUndefined();
  });

  test("waits for its Workspace, and for its pod", async () => {
    await using world = await World.make();
    world.operator();
    const uid = await world.update("early");
    await world.until("early", { Progressing: "False/WorkspaceNotFound", Complete: "False/WorkspaceNotFound" });
    const agent = await world.workspace("web", {}, { asleep: true });
    await world.until("early", { Progressing: "False/WorkspaceNotReady" });
    expect(agent.begun).toEqual([]);
    await world.setReady("web", { address: `127.0.0.1:${agent.port}` });
    await begun(world, uid);
  });

  test("fails with the program's own words", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    world.operator();
    const uid = await world.update("broken");
    await begun(world, uid);
    const error = { class: "programError", message: "The program failed.", lines: ["error: no such bucket"] } as const;
    agent.finish(uid, { outcome: "failed", error: { ...error, lines: [...error.lines] } });
    const done = await world.until("broken", { Failed: "True/UpdateFailed", Complete: "True/UpdateFailed" });
    expect(done.status?.message).toBe("The program failed.\nerror: no such bucket");
    expect(done.status?.errorClass).toBe("programError");
  });

  test("with a spec that makes no sense fails and says why", async () => {
    await using world = await World.make();
    world.operator();
    await world.update("nonsense", { type: "explode" });
    const done = await world.until("nonsense", { Failed: "True/Failed", Complete: "True/Failed" });
    expect(done.status?.message).toContain("spec.type");
  });

  test("goes when its time has come", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    const operator = world.operator();
    const uid = await world.update("brief", { ttlAfterCompleted: "1s" });
    await begun(world, uid);
    agent.finish(uid, { finishedAt: new Date().toISOString() });
    await waitFor(async () => (await world.find("brief")) === undefined, { what: "it to be gone" });
    // The event follows the deed.
    const reasons = (): string => operator.events.map(({ reason }) => reason).join();
    await waitFor(() => reasons() === "UpdateSucceeded,UpdateExpired", { what: "both events" });
  });

  test("keeps a long print in a Secret", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    world.operator();
    const uid = await world.update("wordy", { type: "preview" });
    await begun(world, uid);
    const tail = "+ create\n".repeat(5_000);
    agent.finish(uid, { output: { tail, bytes: tail.length, truncated: false } });
    const done = await world.until("wordy", succeeded);
    expect(done.status?.stdout).toMatchObject({ truncated: true, secretName: "wordy-stdout" });
    const secret = await world.secret("wordy-stdout");
    expect(Buffer.from(secret?.data?.["stdout"] ?? "", "base64").toString()).toBe(tail);
  });
});

describe("never doubled, never lost", () => {
  test("an operator that is started again takes up the run", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    const first = world.operator();
    const uid = await world.update("long");
    await begun(world, uid);
    agent.tell(uid, { kind: "resource", phase: "finished", op: "create", urn: "urn:a", resourceType: "t" });
    await waitFor(async () => (await world.find("long"))?.status?.progress?.created === 1);
    await first.stop();
    agent.tell(uid, { kind: "resource", phase: "finished", op: "create", urn: "urn:b", resourceType: "t" });
    world.operator();
    await waitFor(async () => (await world.find("long"))?.status?.progress?.created === 2);
    agent.finish(uid);
    await world.until("long", succeeded);
    expect(agent.begun).toEqual([uid]);
  });

  test("a run that ended while no operator was there is found", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    const first = world.operator();
    const uid = await world.update("long");
    await begun(world, uid);
    await world.until("long", progressing);
    await first.stop();
    agent.finish(uid);
    world.operator();
    await world.until("long", succeeded);
    expect(agent.begun).toEqual([uid]);
  });

  test("a pod that is replaced during the run ends it, and it is not started again", async () => {
    await using world = await World.make();
    const old = await world.workspace("web");
    world.operator();
    const uid = await world.update("long");
    await begun(world, uid);
    await old.close();
    await world.deletePod("web");
    const next = await world.pod("web");
    await world.setReady("web", { address: `127.0.0.1:${next.port}` });
    const done = await world.until("long", { Failed: "True/Aborted", Complete: "True/Aborted" });
    expect(done.status?.message).toContain("pod");
    const another = await world.update("another");
    await begun(world, another);
    expect(next.begun).toEqual([another]);
  });

  test("a pod that is replaced while no operator is there, too", async () => {
    await using world = await World.make();
    const old = await world.workspace("web");
    const first = world.operator();
    const uid = await world.update("long");
    await begun(world, uid);
    await world.until("long", progressing);
    await first.stop();
    await old.close();
    await world.deletePod("web");
    const next = await world.pod("web");
    await world.setReady("web", { address: `127.0.0.1:${next.port}` });
    world.operator();
    await world.until("long", { Failed: "True/Aborted" });
    expect(next.begun).toEqual([]);
  });

  test("an agent that restarts tells what it knows", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    world.operator();
    const uid = await world.update("long");
    await begun(world, uid);
    await agent.close();
    await world.until("long", { Progressing: "True/TransientFailure" });
    agent.finish(uid, { outcome: "interrupted" });
    await agent.listen(world.authority);
    await world.until("long", { Failed: "True/Aborted" });
    expect(agent.begun).toEqual([uid]);
  });

  test("one at a time in a Workspace, in the order they were made", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    world.operator();
    const uids = [];
    for (const name of ["a", "b", "c"]) uids.push(await world.update(name));
    for (const [index, uid] of uids.entries()) {
      await begun(world, uid);
      expect(agent.begun).toEqual(uids.slice(0, index + 1));
      agent.finish(uid);
    }
    await world.until("c", succeeded);
  });

  test("an agent that is busy or not prepared is asked again", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    agent.refusal = "busy";
    world.operator();
    const uid = await world.update("patient");
    await world.until("patient", { Progressing: "True/WorkspaceNotReady" });
    const asked = (): number => agent.calls.get("start") ?? 0;
    const whileBusy = asked();
    await waitFor(() => asked() > whileBusy, { what: "a busy agent to be asked again" });

    let renewals = 0;
    world.unprepared = () => renewals++;
    agent.refusal = "unprepared";
    await waitFor(() => renewals >= 1, { what: "the agent to be prepared anew" });
    const whileUnprepared = asked();
    await waitFor(() => asked() > whileUnprepared, { what: "an unprepared agent to be asked again" });
    expect(agent.begun).toEqual([]);
    agent.refusal = undefined;
    await begun(world, uid);
    agent.finish(uid);
    await world.until("patient", succeeded);
  });

  test("a Workspace that has changed since it was last seen is waited for", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    const changed = { spec: { stacks: [{ name: "dev" }] } };
    let looks = 0;
    const client: Client = {
      ...world.client,
      create: (resource, object, options) => world.client.create(resource, object, options),
      apply: (resource, body, options) => world.client.apply(resource, body, options),
      patch: (resource, ref, change) => world.client.patch(resource, ref, change),
      find: async (resource, ref, options) => {
        // The stores learn of it a moment later than this call.
        if (resource.kind === "Workspace" && looks++ === 0) {
          await world.client.patch(resource, ref, { patch: { type: "merge", body: changed } });
        }
        return await world.client.find(resource, ref, options);
      },
    };
    world.operator(client);
    await world.update("eager");
    await world.until("eager", { Progressing: "False/WorkspaceNotReady" });
    expect(agent.begun).toEqual([]);
  });

  test("what an agent refuses for good fails", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    agent.refusal = "invalidRequest";
    world.operator();
    await world.update("refused");
    await world.until("refused", { Failed: "True/UpdateFailed" });
  });

  test("what an earlier operator began is reported, and not begun again", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    await world.update("old");
    const patch = { type: "merge", body: { status: { startTime: "2030-01-01T00:00:00Z" } } } as const;
    await world.client.patch(updates, world.ref("old"), { patch, subresource: "status" });
    world.operator();
    await world.until("old", { Failed: "True/Aborted" });
    expect(agent.begun).toEqual([]);
  });
});

describe("an Update that is deleted", () => {
  const gone = async (world: World, name: string): Promise<void> => {
    await waitFor(async () => (await world.find(name)) === undefined, { what: `${name} to be gone` });
  };

  test("has its run cancelled, and goes when that has ended", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    agent.heedsCancel = false;
    world.operator();
    const uid = await world.update("unwanted");
    await begun(world, uid);
    await world.until("unwanted", progressing);
    await world.client.delete(updates, world.ref("unwanted"));
    await waitFor(() => agent.isCancelled(uid), { what: "the run to be cancelled" });
    expect(conditionsOf(await world.find("unwanted"))).toMatchObject(progressing);
    agent.finish(uid, { outcome: "cancelled" });
    await gone(world, "unwanted");
  });

  test("also when the operator was not there at that moment", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    const first = world.operator();
    const uid = await world.update("unwanted");
    await begun(world, uid);
    await world.until("unwanted", progressing);
    await first.stop();
    await world.client.delete(updates, world.ref("unwanted"));
    world.operator();
    await gone(world, "unwanted");
    expect(agent.isCancelled(uid)).toBe(true);
    expect(agent.begun).toEqual([uid]);
  });

  test("is not begun when the agent was busy until then", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    agent.refusal = "busy";
    world.operator();
    await world.update("unwanted");
    await world.until("unwanted", { Progressing: "True/WorkspaceNotReady" });
    await world.client.delete(updates, world.ref("unwanted"));
    await gone(world, "unwanted");
    agent.refusal = undefined;
    await Bun.sleep(500);
    expect(agent.begun).toEqual([]);
  });

  test("goes at once when its pod is gone", async () => {
    await using world = await World.make();
    const agent = await world.workspace("web");
    const first = world.operator();
    const uid = await world.update("unwanted");
    await begun(world, uid);
    await first.stop();
    await agent.close();
    await world.deletePod("web");
    await world.client.delete(updates, world.ref("unwanted"));
    world.operator();
    await gone(world, "unwanted");
  });

  test("goes with its namespace, outputs or not", async () => {
    await using world = await World.make();
    world.rights.expectForbidden(/because it is being terminated/);
    const agent = await world.workspace("web");
    agent.outputs.push({ name: "url", value: "x", secret: false, known: true });
    world.operator();
    const uid = await world.update("doomed");
    await begun(world, uid);
    await world.until("doomed", progressing);
    await world.client.delete(
      { apiVersion: "v1", kind: "Namespace", plural: "namespaces", namespaced: false },
      { name: world.namespace.name },
    );
    await world.client.delete(updates, world.ref("doomed"));
    agent.finish(uid);
    await gone(world, "doomed");
  });
});
