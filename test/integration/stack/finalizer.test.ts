/** The finalizer is removed only after the API server has confirmed what the stores show (docs/adr/0010). */
import { expect, test } from "bun:test";
import { stackFinalizer } from "@pko/api";
import { connect } from "@pko/kube";
import { stacks, updates } from "@pko/operator";
import { faultProxy, sharedApiServer, waitFor, type FaultProxy } from "@pko/testkit";

import { testTimeoutMs, StackScene } from "./scene.ts";

/** Between `pause` and `resume` the proxy delays the watch events of one resource: its store is stale. */
async function proxyWithStaleStore(resource: "stacks" | "updates") {
  const proxy = await faultProxy((await sharedApiServer()).credentials);
  const resumed = Promise.withResolvers<void>();
  let isPaused = false;
  proxy.onEvent(async (_, request) => {
    if (isPaused && request.resource === resource) await resumed.promise;
    return "pass" as const;
  });
  return { proxy, pause: () => void (isPaused = true), resume: () => resumed.resolve() };
}

/** Whether the Updates were read from the API server by name. */
const confirmed = (proxy: FaultProxy): boolean =>
  proxy.requests.some(({ verb, resource }) => verb === "get" && resource === "updates");

test(
  "a Stack without destroyOnFinalize is not deleted while an Update runs that the store does not show",
  async () => {
    await using scene = await StackScene.open("without operator");
    const { proxy, pause, resume } = await proxyWithStaleStore("updates");
    await using _proxy = proxy;
    scene.simulator.script.update = () => ({ end: "never" });
    await using operator = scene.start({ client: connect(proxy.credentials) });
    await operator.synced;
    pause();
    await scene.program("program");
    await scene.stack("web");
    const [update] = await waitFor(async () => {
      const { items } = await scene.client.list(updates, { namespace: scene.namespace });
      return items.length === 1 ? items : undefined;
    });
    const name = update?.metadata.name ?? "";
    const started = { status: { startTime: new Date().toISOString(), podUid: "a-pod" } };
    const patch = { type: "merge", body: started } as const;
    await scene.client.patch(updates, { namespace: scene.namespace, name }, { patch, subresource: "status" });

    proxy.forget();
    await scene.delete("web");
    await waitFor(() => confirmed(proxy), { timeoutMs: 45_000, what: "the Updates to be read" });
    expect((await scene.find("web"))?.metadata.finalizers).toEqual([stackFinalizer]);
    const removals = proxy.requests.filter(
      ({ verb, resource, body }) => verb === "patch" && resource === "stacks" && body.includes('"finalizers"'),
    );
    expect(removals).toEqual([]);

    scene.simulator.script.update = () => ({ end: "succeeded" });
    resume();
    await scene.isDeleted("web");
  },
  testTimeoutMs,
);

test(
  "a Stack whose destroyOnFinalize was turned on is destroyed, though the store does not show it",
  async () => {
    await using scene = await StackScene.open("without operator");
    const { proxy, pause, resume } = await proxyWithStaleStore("stacks");
    await using _proxy = proxy;
    await using _operator = scene.start({ client: connect(proxy.credentials) });
    await scene.program("program");
    await scene.stack("web");
    await scene.isReady("web");

    // The store shows the deletion, and nothing after it.
    const reads: number[] = [];
    proxy.on(async ({ verb, resource, body, sequence }) => {
      const isRead = verb === "get" && resource === "stacks";
      const isRemoval = verb === "patch" && resource === "stacks" && body.includes('"finalizers"');
      if (!isRead && !isRemoval) return undefined;
      pause();
      const patch = { type: "merge", body: { spec: { destroyOnFinalize: true } } } as const;
      await scene.client.patch(stacks, { namespace: scene.namespace, name: "web" }, { patch });
      reads.push(sequence);
      return undefined;
    });
    await scene.delete("web");
    await waitFor(() => reads.length > 1, { timeoutMs: 45_000, what: "two attempts to remove the finalizer" });
    expect((await scene.find("web"))?.metadata.finalizers).toEqual([stackFinalizer]);
    resume();
    await scene.isDeleted("web");
    expect(scene.runs.at(-1)).toStartWith("destroy");
  },
  testTimeoutMs,
);

test(
  "a Stack is not deleted while another owner's Update runs in its Workspace, and reports it",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    await scene.stack("web");
    await scene.isReady("web");
    const ref = { namespace: scene.namespace, name: "by-hand" };
    const { apiVersion, kind } = updates;
    scene.simulator.script.update = () => ({ end: "never" });
    const spec = { workspaceName: "web", stackName: "dev", type: "refresh" };
    await scene.client.create(updates, { apiVersion, kind, metadata: ref, spec });
    const patch = { type: "merge", body: { status: { podUid: "a-pod" } } } as const;
    await scene.client.patch(updates, ref, { patch, subresource: "status" });

    await scene.delete("web");
    await scene.becomes("web", "waiting for the Update", ({ status }) =>
      JSON.stringify(status?.conditions).includes("delete Update by-hand"),
    );
    scene.simulator.script.update = () => ({ end: "succeeded" });
    await waitFor(async () => (await scene.client.get(updates, ref)).status?.endTime !== undefined);
    scene.jump(10_000);
    await scene.isDeleted("web");
  },
  testTimeoutMs,
);
