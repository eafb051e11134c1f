/** The stores may be stale: before something is deleted, the API server confirms it (docs/adr/0010). */
import { expect, test } from "bun:test";
import { stackFinalizer, type Stack } from "@pko/api";
import { refKey } from "@pko/kube";
import { updates, workspaces } from "@pko/operator";
import { faultProxy, waitFor } from "@pko/testkit";

import { decide } from "../approvals/decide.ts";
import { reasonOf, StackScene, testTimeoutMs } from "./scene.ts";

test(
  "an Update that starts just before it would be withdrawn keeps running",
  async () => {
    await using scene = await StackScene.open("without operator");
    await using proxy = await faultProxy(scene.rights.credentials);
    const startTime = new Date().toISOString();
    proxy.on(async ({ verb, resource, name = "" }) => {
      if (verb !== "delete" || resource !== "updates") return undefined;
      const patch = { type: "merge", body: { status: { startTime, podUid: "a-pod" } } } as const;
      await scene.client.patch(updates, { namespace: scene.namespace, name }, { patch, subresource: "status" });
      return undefined;
    });
    scene.simulator.script.update = () => ({ end: "never" });
    scene.start({ client: scene.rights.connect(proxy.credentials) });
    await scene.program("program");
    await scene.stack("web");
    await waitFor(() => scene.runs.length === 1, { what: "the Update to be created" });
    scene.simulator.script.workspace = () => ({ waiting: "no image" });
    await scene.program("program", "two");
    const isRejected = (): boolean => proxy.requests.some(({ verb, status }) => verb === "delete" && status === 409);
    await waitFor(isRejected, { timeoutMs: 45_000, what: "the withdrawal to be rejected" });
    await scene.becomes("web", "running", ({ status }) => JSON.stringify(status).includes("has been running since"));
    const { items } = await scene.client.list(updates, { namespace: scene.namespace });
    expect(items.map(({ metadata }) => metadata.deletionTimestamp)).toEqual([undefined]);
  },
  testTimeoutMs,
);

test(
  "a Workspace is not deleted while another owner's Update runs in it",
  async () => {
    await using scene = await StackScene.open("without operator");
    await using proxy = await faultProxy(scene.rights.credentials);
    const { namespace, client } = scene;
    const ref = { namespace, name: "by-hand" };
    scene.simulator.script.update = () => ({ end: "never" });
    scene.start({ client: scene.rights.connect(proxy.credentials) });
    await scene.program("program");
    await scene.stack("web", { workspaceReclaimPolicy: "Delete" });
    await waitFor(() => scene.runs.length === 1, { what: "the Update to be created" });
    const spec = { workspaceName: "web", stackName: "dev", type: "refresh" };
    const { apiVersion, kind } = updates;
    await client.create(updates, { apiVersion, kind, metadata: ref, spec });
    const patch = { type: "merge", body: { status: { podUid: "a-pod" } } } as const;
    await client.patch(updates, ref, { patch, subresource: "status" });

    proxy.forget();
    scene.simulator.script.update = ({ metadata }) => ({ end: metadata.name === ref.name ? "never" : "succeeded" });
    await scene.isReady("web");
    const isRead = (): boolean =>
      proxy.requests.some(({ verb, resource }) => verb === "list" && resource === "updates");
    await waitFor(isRead, { timeoutMs: 45_000, what: "the Updates to be read" });
    const kept = await client.get(workspaces, { namespace, name: "web" });
    expect(kept.metadata.deletionTimestamp).toBeUndefined();
    expect(proxy.requests.filter(({ verb, resource }) => verb === "delete" && resource === "workspaces")).toEqual([]);

    scene.simulator.script.update = () => ({ end: "succeeded" });
    await waitFor(async () => (await client.get(updates, ref)).status?.endTime !== undefined);
    scene.jump(10_000);
    const isDeleted = async (): Promise<boolean> =>
      (await client.find(workspaces, { namespace, name: "web" })) === undefined;
    await waitFor(isDeleted, { timeoutMs: 45_000, what: "the Workspace to be deleted" });
  },
  testTimeoutMs,
);

test(
  "the finalizer of Updates stays if the store does not show their Stack yet",
  async () => {
    await using scene = await StackScene.open("without operator");
    await using proxy = await faultProxy(scene.rights.credentials);
    proxy.onEvent(async (_, { resource }) => {
      if (resource === "stacks") await new Promise(() => {});
      return "pass" as const;
    });
    const watching = proxy.nextRequest(({ verb, resource }) => verb === "watch" && resource === "stacks");
    await using _ = scene.start({ client: scene.rights.connect(proxy.credentials) });
    await watching;
    scene.simulator.script.update = () => ({ end: "never" });
    scene.start();
    await scene.program("program");
    await scene.stack("web");
    const isRead = (): boolean => proxy.requests.some(({ verb, resource }) => verb === "get" && resource === "stacks");
    await waitFor(isRead, { timeoutMs: 45_000, what: "the Stack to be read" });
    await scene.becomes("web", "waiting for its update", ({ status }) => status?.currentUpdate !== undefined);
    const { items } = await scene.client.list(updates, { namespace: scene.namespace });
    expect(items.map(({ metadata }) => metadata.finalizers)).toEqual([[stackFinalizer]]);
  },
  testTimeoutMs,
);

test(
  "each result is recorded once, and in order, if the store shows the Updates late",
  async () => {
    await using scene = await StackScene.open("without operator");
    await using proxy = await faultProxy(scene.rights.credentials);
    const stale = Promise.withResolvers<"pass">();
    proxy.onEvent(async (_, { resource }) => (resource === "updates" ? await stale.promise : "pass"));
    scene.start({ client: scene.rights.connect(proxy.credentials) });
    await scene.program("program");
    await scene.stack("web");
    const reads = (): number =>
      proxy.requests.filter(({ verb, resource }) => verb === "get" && resource === "updates").length;
    const passesAfter = async (change: string): Promise<void> => {
      proxy.forget();
      await scene.program("program", change);
      await waitFor(() => reads() > 0 || scene.runs.length > 1, { timeoutMs: 45_000, what: `a pass after ${change}` });
    };
    await waitFor(() => reads() > 0, { timeoutMs: 45_000, what: "the Update to be read" });
    await passesAfter("two");
    await passesAfter("three");
    const { store } = scene.operator.stores.programs;
    const isSeen = (): boolean => store.get(refKey(scene.ref("program")))?.metadata.generation === 3;
    await waitFor(isSeen, { timeoutMs: 45_000, what: "the operator to see the third program" });
    stale.resolve("pass");
    const isSettled = async (): Promise<boolean> => {
      const [stack, { items }] = await Promise.all([
        scene.find("web"),
        scene.client.list(updates, { namespace: scene.namespace }),
      ]);
      const isRecorded = items.every(({ metadata }) => (metadata.finalizers ?? []).length === 0);
      return isRecorded && stack?.status?.lastUpdate?.lastSuccessfulCommit === "3";
    };
    await waitFor(isSettled, { timeoutMs: 45_000, what: "all results to be recorded" });
    expect(scene.runs).toEqual(["up@1", "up@3"]);
  },
  testTimeoutMs,
);

test(
  "a plan is applied by one Update, and not made again, if the store does not show that Update yet",
  async () => {
    await using scene = await StackScene.open("without operator");
    await using proxy = await faultProxy(scene.rights.credentials);
    const stale = Promise.withResolvers<"pass">();
    let isStale = false;
    proxy.onEvent(async (_, { resource }) => (resource === "updates" && isStale ? await stale.promise : "pass"));
    scene.start({ client: scene.rights.connect(proxy.credentials) });
    await scene.program("program");
    await scene.stack("web", { approval: { required: "Always" } });
    const { status } = await scene.becomes(
      "web",
      "awaiting an approval",
      (stack) => reasonOf(stack) === "AwaitingApproval",
    );
    await scene.fence();
    isStale = true;
    if (status?.approval) await decide(scene, status.approval);
    const isRead = (): boolean => proxy.requests.some(({ verb, resource }) => verb === "get" && resource === "updates");
    await waitFor(isRead, { timeoutMs: 45_000, what: "the Update to be read" });
    stale.resolve("pass");
    await scene.isReady("web", "1");
    expect(scene.runs).toEqual(["preview@1", "up@1"]);
  },
  testTimeoutMs,
);

test(
  "a plan that waits for an approval is not made again if the store does not show its Update",
  async () => {
    await using scene = await StackScene.open("without operator");
    await using proxy = await faultProxy(scene.rights.credentials);
    proxy.onEvent(async (_, { resource }) => (resource === "updates" ? "drop" : "pass"));
    const watching = proxy.nextRequest(({ verb, resource }) => verb === "watch" && resource === "updates");
    await using _ = scene.start({ client: scene.rights.connect(proxy.credentials) });
    await watching;
    scene.start();
    await scene.program("program");
    await scene.stack("web", { approval: { required: "Always" } });
    const isAwaiting = (stack: Stack): boolean => reasonOf(stack) === "AwaitingApproval";
    const { status } = await scene.becomes("web", "awaiting an approval", isAwaiting);
    proxy.forget();
    await scene.annotate("web", { "example.com/pass": "1" });
    const isRead = (): boolean => proxy.requests.some(({ resource }) => resource === "updates");
    await waitFor(isRead, { timeoutMs: 45_000, what: "the Update to be read" });
    if (status?.approval) await decide(scene, status.approval);
    await scene.isReady("web", "1");
    expect(scene.runs).toEqual(["preview@1", "up@1"]);
  },
  testTimeoutMs,
);

test(
  "a drift check in the status is kept if the store shows an older status",
  async () => {
    await using scene = await StackScene.open("without operator");
    await using proxy = await faultProxy(scene.rights.credentials);
    let isStale = false;
    proxy.onEvent(async (_, { resource }) => (resource === "stacks" && isStale ? "drop" : "pass"));
    await using _ = scene.start({ client: scene.rights.connect(proxy.credentials) });
    scene.start();
    scene.simulator.script.update = ({ spec }) => ({
      end: "succeeded",
      ...(spec?.type === "refresh" && { drift: { resources: [] } }),
    });
    await scene.program("program");
    await scene.stack("web", { driftDetection: { intervalSeconds: 60 }, successfulUpdatesHistoryLimit: 0 });
    await scene.isReady("web", "1");
    scene.jump(61_000);
    const first = await scene.becomes("web", "checked", ({ status }) => status?.drift !== undefined);
    await scene.fence();
    isStale = true;
    scene.jump(61_000);
    const isChecked = ({ status }: Stack): boolean => status?.drift?.updateName !== first.status?.drift?.updateName;
    const { status } = await scene.becomes("web", "checked again", isChecked);
    // The Stack may be read as soon as the check is recorded.
    proxy.forget();
    const ref = { namespace: scene.namespace, name: status?.drift?.updateName ?? "" };
    const isRecorded = async (): Promise<boolean> =>
      ((await scene.client.find(updates, ref))?.metadata.finalizers ?? []).length === 0;
    await waitFor(isRecorded, { timeoutMs: 45_000, what: "the check to be recorded" });
    const isConfirmed = (): boolean =>
      proxy.requests.some(({ verb, resource }) => verb === "get" && resource === "stacks");
    await waitFor(isConfirmed, { timeoutMs: 45_000, what: "the Stack to be read" });
    expect(proxy.requests.filter(({ verb, resource }) => verb === "delete" && resource === "updates")).toEqual([]);
    expect(await scene.client.find(updates, ref)).toBeDefined();
  },
  testTimeoutMs,
);
