/** Limits of concurrent updates, with a real API server: of Stacks, of Updates and of Workspaces that users create. */
import { describe, expect, test } from "bun:test";
import { isComplete, type Stack, type Update } from "@pko/api";
import { builtin, keyOf } from "@pko/kube";
import { stacks as stackResource, updates, workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { JumpingClock } from "../harness/jumping-clock.ts";
import { Operator } from "../harness/operator.ts";
import { reasonOf, stackWiring, StackScene } from "../stack/scene.ts";
import { conditionsOf, UpdateScene } from "../update/scene.ts";
import { WorkspaceScene } from "../workspace/scene.ts";

const limitedTo = (total: number) => ({ total, inNamespace: () => 0 });

describe("a hundred Stacks of one tenant and one of another, with four slots", () => {
  test("never more than four run, and the other tenant gets the first slot that is returned", async () => {
    await using crowd = await StackScene.open("without operator");
    await using lone = await StackScene.open("without operator");
    const released = new Set<string>();
    let areAllReleased = false;
    for (const scene of [crowd, lone]) {
      scene.simulator.script.update = (update) => ({
        end: areAllReleased || released.has(keyOf(update)) ? "succeeded" : "never",
      });
      await scene.program("program");
    }
    for (let index = 0; index < 100; index++) await crowd.stack(`web-${index}`);

    const { client, namespace } = crowd;
    const wiring = stackWiring(namespace, { limits: limitedTo(4) });
    await using operator = new Operator({ client, namespace, moreNamespaces: [lone.namespace] }, wiring);
    const { store } = operator.stores.updates;
    const running = (): readonly Update[] => store.list().filter((update) => !isComplete(update));
    const most = { running: 0 };
    store.subscribe(() => (most.running = Math.max(most.running, running().length)));
    const until = async (what: string, is: () => boolean): Promise<unknown> =>
      await waitFor(is, { timeoutMs: 90_000, what });

    await until("four Updates", () => running().length === 4);
    // Everyone has claimed a slot: who waits has neither a Workspace nor an Update, and shows its position.
    const waiting = '{namespace="' + namespace + '"} 96';
    await until("96 to wait", () => operator.metrics.expose().includes(`update_slots_waiting${waiting}`));
    const isWaiting = (stack: Stack): boolean => reasonOf(stack) === "WaitingForSlot";
    const { items: stacks } = await client.list(stackResource, { namespace });
    const last = stacks.find(isWaiting)?.metadata.name ?? "";
    const { status } = await crowd.becomes(last, "waiting", isWaiting);
    expect(status?.waiting?.for).toMatch(/^a free slot \(position \d+ of \d+\)$/);
    expect((await client.list(workspaces, { namespace })).items).toHaveLength(4);

    await lone.stack("site");
    await lone.becomes("site", "waiting", isWaiting);
    const [first] = running();
    if (first) released.add(keyOf(first));
    await until("the Update of the other tenant", () =>
      running().some(({ metadata }) => metadata.namespace === lone.namespace),
    );
    expect(store.list().filter(isComplete)).toHaveLength(1);

    areAllReleased = true;
    await until("all to end", () => store.list().filter(isComplete).length === 101);
    expect([most.running, store.list().length]).toEqual([4, 101]);
  }, 240_000);
});

describe("Updates that users create", () => {
  test("wait for a slot in the order of their creation, and show their position", async () => {
    await using scene = await UpdateScene.open();
    const agents = await Promise.all(["a", "b", "c"].map((name) => scene.workspace(name)));
    scene.operator({ limits: limitedTo(1) });
    const uids: string[] = [];
    for (const name of ["a", "b", "c"]) {
      uids.push(await scene.update(`run-${name}`, { workspaceName: name }));
      await scene.until(`run-${name}`, {
        Progressing: name === "a" ? "True/Progressing" : "False/WaitingForSlot",
      });
    }
    const [, , last] = await Promise.all(["a", "b", "c"].map((name) => scene.find(`run-${name}`)));
    expect(last?.status?.conditions?.[0]?.message).toContain("position 2 of 2 in the queue");
    for (const [index, agent] of agents.entries()) {
      await waitFor(() => agent.started.length === 1, { timeoutMs: 45_000, what: `run ${index} to start` });
      expect(agents.filter(({ started }) => started.length > 0)).toHaveLength(index + 1);
      agent.finish(uids[index] ?? "");
      await scene.until(`run-${["a", "b", "c"][index]}`, { Complete: "True/Updated" });
    }
  }, 180_000);

  test("return their slot when their Workspace is deleted before they start", async () => {
    await using scene = await UpdateScene.open();
    await scene.workspace("a", {}, { idle: true });
    const next = await scene.workspace("b");
    scene.operator({ limits: limitedTo(1) });
    await scene.update("run-a", { workspaceName: "a" });
    await scene.until("run-a", { Progressing: "False/WorkspaceNotReady" });
    await scene.update("run-b", { workspaceName: "b" });
    await scene.until("run-b", { Progressing: "False/WaitingForSlot" });
    await scene.client.delete(workspaces, scene.ref("a"));
    await scene.until("run-a", { Progressing: "False/WorkspaceNotFound" });
    await waitFor(() => next.started.length === 1, { timeoutMs: 45_000, what: "the next run to start" });
  }, 180_000);

  test("that run hold their slots after a restart of the operator", async () => {
    await using scene = await UpdateScene.open();
    const [first, second] = [await scene.workspace("a"), await scene.workspace("b")];
    const before = scene.operator({ limits: limitedTo(1) });
    const uid = await scene.update("run-a", { workspaceName: "a" });
    await waitFor(() => first.started.length === 1, { timeoutMs: 45_000, what: "the run to start" });
    await before.stop();
    await scene.update("run-b", { workspaceName: "b" });
    scene.operator({ limits: limitedTo(1) });
    await scene.until("run-b", { Progressing: "False/WaitingForSlot" });
    expect(second.started).toEqual([]);
    first.finish(uid);
    await waitFor(() => second.started.length === 1, { timeoutMs: 45_000, what: "the next run to start" });
    expect(conditionsOf(await scene.find("run-a"))["Complete"]).toBe("True/Updated");
  }, 180_000);
});

test("a Workspace that a user creates waits for a slot before its pod is created", async () => {
  await using scene = await WorkspaceScene.open({}, { limits: limitedTo(1) });
  const spec = { local: { dir: "/app" }, stacks: [{ name: "dev" }] };
  await scene.create("first", spec);
  await scene.becomes("first", "WaitingForReplicas");
  await scene.create("second", spec);
  await scene.becomes("second", "WaitingForSlot", "position 1 of 1");
  const owned = await scene.client.list(builtin.statefulSets, { namespace: scene.namespace });
  expect(owned.items.map(({ metadata }) => metadata.name)).toEqual(["first-workspace"]);
  await scene.simulatePod("first");
  await scene.becomes("first", "Succeeded");
  await scene.becomes("second", "WaitingForReplicas");
  // The first one needs a slot again for an Update, and the second one has it.
  await scene.createUpdate("run", "first");
  await scene.reconciled("first");
  expect((await scene.client.get(updates, scene.ref("run"))).status).toBeUndefined();
}, 180_000);

test("pods that never start do not pile up: each returns its slot together with its pod, and all get their turn", async () => {
  const clock = new JumpingClock();
  await using scene = await WorkspaceScene.open({}, { limits: limitedTo(4), clock });
  const names = Array.from({ length: 12 }, (_, index) => `web-${index}`);
  for (const name of names) await scene.create(name, { local: { dir: "/app" }, stacks: [{ name: "dev" }] });

  const started = new Set<string>();
  let most = 0;
  using _watch = scene.onStatefulSets((sets) => {
    const running = sets.filter(({ spec }) => (spec?.replicas ?? 0) > 0).map(({ metadata }) => metadata.name ?? "");
    most = Math.max(most, running.length);
    for (const name of running) started.add(name);
  });
  const turns = Math.ceil(names.length / 4);
  for (let turn = 1; turn <= turns; turn++) {
    const count = Math.min(names.length, turn * 4);
    await waitFor(() => started.size >= count, { timeoutMs: 60_000, what: `${count} pods to be requested` });
    clock.jump(301_000);
  }
  expect([most, started.size]).toEqual([4, 12]);
  // Who waits for another turn shows why its pod did not start.
  const first = [...started][0]?.replace(/-workspace$/, "") ?? "";
  await scene.becomes(first, "WaitingForSlot", "has not started for five minutes");
}, 240_000);
