/** How the agent gets into the pod: with a helper container if possible, otherwise with an init container. */
import { expect, test } from "bun:test";

import { builtin, type Resource } from "@pko/kube";
import { waitFor } from "@pko/testkit";

import { testTimeoutMs, WorkspaceScene } from "./scene.ts";

const limitRanges: Resource = { apiVersion: "v1", kind: "LimitRange", plural: "limitranges", namespaced: true };
const resourceQuotas: Resource = {
  apiVersion: "v1",
  kind: "ResourceQuota",
  plural: "resourcequotas",
  namespaced: true,
};
const spec = { local: { dir: "/app" }, stacks: [{ name: "dev" }] };

const isInitContainer = async (scene: WorkspaceScene, name: string): Promise<boolean> => {
  const pod = (await scene.statefulSet(name)).spec?.template.spec;
  return pod?.initContainers?.some((each) => each.name === "bootstrap") ?? false;
};

test(
  "a namespace that does not admit the helper container gets an init container",
  async () => {
    await using scene = await WorkspaceScene.open();
    await rejectHelper(scene);
    await scene.create("web", spec);
    await scene.becomes("web", "WaitingForReplicas");
    expect(await isInitContainer(scene, "web")).toBe(true);
    await scene.simulatePod("web");
    await scene.becomes("web", "Succeeded");
  },
  testTimeoutMs,
);

test(
  "so does one that no longer admits it when the pod is created",
  async () => {
    await using scene = await WorkspaceScene.open();
    await scene.create("web", spec);
    await scene.becomes("web", "WaitingForReplicas");
    expect(await isInitContainer(scene, "web")).toBe(false);
    await rejectHelper(scene);
    await scene.simulateRevision("web", "one");
    await waitFor(async () => await isInitContainer(scene, "web"), { timeoutMs: 90_000 });
  },
  testTimeoutMs,
);

async function rejectHelper(scene: WorkspaceScene): Promise<void> {
  scene.rights.expectForbidden(/minimum cpu usage per Container/);
  const limits = [{ type: "Container", min: { cpu: "50m" } }];
  const { apiVersion, kind } = limitRanges;
  const range = { apiVersion, kind, metadata: scene.ref("smallest"), spec: { limits } };
  await scene.client.create(limitRanges, range);
  // The API server caches LimitRanges.
  await waitFor(async () => (await rejectionOfPod(scene, { cpu: "0" })) !== undefined);
}

/** Why the API server rejects a pod that requests these resources; undefined if it admits it. */
async function rejectionOfPod(
  scene: WorkspaceScene,
  requests: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const containers = [{ name: "c", image: "i", resources: { requests } }];
  const pod = { apiVersion: "v1", kind: "Pod", metadata: scene.ref("probe"), spec: { containers } };
  try {
    await scene.client.create(builtin.pods, pod, { dryRun: true });
    return undefined;
  } catch (error) {
    return String(error);
  }
}

test(
  "a quota for requests counts nothing for the helper container",
  async () => {
    await using scene = await WorkspaceScene.open();
    const hard = { "requests.cpu": "100m", "requests.memory": "64Mi" };
    await setQuota(scene, { hard, used: { "requests.cpu": "0", "requests.memory": "0" } });
    await scene.ready("web", spec);
    expect(await isInitContainer(scene, "web")).toBe(false);
  },
  testTimeoutMs,
);

test(
  "the helper container stays if the former pod is what exceeds a quota",
  async () => {
    await using scene = await WorkspaceScene.open();
    scene.rights.expectForbidden(/exceeded quota/);
    await scene.ready("web", spec);
    await setQuota(scene, { hard: { pods: "1" }, used: { pods: "1" } });
    await scene.change("web", { image: "other:1" });
    await waitFor(async () => (await scene.container("web"))?.image === "other:1");
    expect(await isInitContainer(scene, "web")).toBe(false);
  },
  testTimeoutMs,
);

/** Also counts, like the controller of quotas. */
async function setQuota(scene: WorkspaceScene, status: { hard: object; used: object }): Promise<void> {
  const { apiVersion, kind } = resourceQuotas;
  const { hard } = status;
  const quota = { apiVersion, kind, metadata: scene.ref("tight"), spec: { hard } };
  await scene.client.create(resourceQuotas, quota);
  const patch = { type: "merge", body: { status } } as const;
  await scene.client.patch(resourceQuotas, scene.ref("tight"), { patch, subresource: "status" });
  // Admission needs a moment to see a new quota, and rejects every pod before it sees the status.
  const requests = { cpu: "1", memory: "1Gi" };
  await waitFor(async () => (await rejectionOfPod(scene, requests))?.includes("exceeded quota"));
}

test(
  "an image without a shell is tried once, also after a restart",
  async () => {
    await using scene = await WorkspaceScene.open();
    const image = "distroless:1";
    await scene.create("web", { ...spec, image });
    await scene.becomes("web", "WaitingForReplicas");
    expect(await isInitContainer(scene, "web")).toBe(false);
    const message = 'exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown';
    const state = { terminated: { exitCode: 128, reason: "StartError", message } };
    const pulumi = { name: "pulumi", image, imageID: "", ready: false, restartCount: 0, state };
    await scene.simulatePod("web", { phase: "Pending", podIP: "10.1.0.9", containerStatuses: [pulumi] });
    await waitFor(async () => await isInitContainer(scene, "web"));
    await scene.simulatePod("web");
    await scene.becomes("web", "Succeeded");

    await scene.upgrade({ agentImage: "agent:2" });
    await waitFor(async () => (await scene.container("web", "bootstrap"))?.image === "agent:2");
    expect(await isInitContainer(scene, "web")).toBe(true);
    await scene.create("other", { ...spec, image });
    await scene.becomes("other", "WaitingForReplicas");
    expect(await isInitContainer(scene, "other")).toBe(true);
  },
  testTimeoutMs,
);
