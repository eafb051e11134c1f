/** Pods whose kubelet no longer exists: they stay Terminating, because no kubelet confirms their end. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { builtin } from "@pko/kube";
import { waitFor } from "@pko/testkit";

import { conditionsOf, UpdateScene } from "./scene.ts";
import type { FakeAgent } from "./fake-agent.ts";

setDefaultTimeout(180_000);

const lost = { Progressing: "True/TransientFailure", Complete: "False/TransientFailure", Stalled: "True/NodeLost" };
const lockHolder = {
  hostname: "web-workspace-0",
  pid: 40,
  startedAt: "2030-01-01T00:00:00.100Z",
  lockedAt: "2030-01-01T00:00:01.200Z",
};

async function running(scene: UpdateScene): Promise<{ readonly agent: FakeAgent; readonly uid: string }> {
  const agent = await scene.workspace("web", {}, { nodeName: "worker-2" });
  const uid = await scene.update("first");
  scene.operator({ lostNodeAfterMs: 500 });
  await waitFor(() => agent.started.includes(uid), { what: "the run to start" });
  return { agent, uid };
}

const podRef = (scene: UpdateScene) => scene.ref("web-workspace-0");

async function stalledMessage(scene: UpdateScene): Promise<string> {
  const update = await scene.until("first", lost);
  return update.status?.conditions?.find(({ type }) => type === "Stalled")?.message ?? "";
}

test("an Update whose pod stays Terminating is stalled with the fix, and interrupted once the pod is removed", async () => {
  await using scene = await UpdateScene.open();
  const { agent, uid } = await running(scene);
  agent.emit(uid, { kind: "notice", message: "the CLI has started", process: lockHolder });
  await waitFor(async () => (await scene.find("first"))?.status?.process?.pid === lockHolder.pid, {
    what: "the process to be recorded",
  });
  await agent.close();
  await scene.client.delete(builtin.pods, podRef(scene), { gracePeriodSeconds: 1 });
  expect((await scene.client.get(builtin.pods, podRef(scene))).metadata.deletionTimestamp).toBeDefined();

  expect(await stalledMessage(scene)).toContain(
    `kubectl delete pod web-workspace-0 -n ${scene.namespace} --force --grace-period=0`,
  );
  // At most once: nothing else starts while the state of the run is unknown.
  const later = await scene.update("second");
  await scene.until("second", { Progressing: "False/WorkspaceNotReady" });

  await scene.deletePod("web");
  const ended = await scene.until("first", { Failed: "True/Aborted", Complete: "True/Aborted" });
  expect(conditionsOf(ended)["Stalled"]).toBe("True/Aborted");
  const next = await scene.pod("web");
  await scene.setReady("web", { address: `127.0.0.1:${next.port}` });
  await waitFor(() => next.started.includes(later), { timeoutMs: 45_000, what: "the next run to start" });
  const { startedAt, lockedAt, hostname, pid } = lockHolder;
  expect(next.requestOf(later).lostRuns).toEqual([{ from: startedAt, to: lockedAt, hostname, pid, startedAt }]);
});

test("an Update on a node that does not respond is stalled, and continues when the node is back", async () => {
  await using scene = await UpdateScene.open();
  const { agent, uid } = await running(scene);
  await agent.close();
  const lastTransitionTime = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const conditions = [
    { type: "Ready", status: "False", lastTransitionTime },
    { type: "ContainersReady", status: "True", lastTransitionTime },
  ];
  const patch = { type: "merge", body: { status: { conditions } } } as const;
  await scene.client.patch(builtin.pods, podRef(scene), { patch, subresource: "status" });
  expect(await stalledMessage(scene)).toContain("kubectl taint nodes worker-2 node.kubernetes.io/out-of-service=");

  await agent.listen(scene.ca);
  agent.emit(uid, { kind: "step", name: "up" });
  await waitFor(async () => conditionsOf(await scene.find("first"))["Stalled"] === undefined, {
    timeoutMs: 45_000,
    what: "the Update to be no longer stalled",
  });
  agent.finish(uid);
  await scene.until("first", { Complete: "True/Updated" });
  expect(agent.started).toEqual([uid]);
});
