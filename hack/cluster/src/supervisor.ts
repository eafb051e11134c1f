/**
 * The supervisor runs all programs of the cluster. It is the child of an init process in its own PID and mount namespace, so
 * the kernel removes every process, mount and network link of the cluster when it ends for any reason.
 */
import { existsSync } from "node:fs";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";

import { createCgroup } from "./cgroup.ts";
import { components, ctr, storeCommand } from "./components.ts";
import { registriesFolder, writeConfigFiles } from "./config-files.ts";
import { writeCredentials } from "./credentials.ts";
import { layout as layoutOf, privateFolder, privateFolders, type Layout } from "./layout.ts";
import { isDnsReady, inClusterNetwork, createNetwork } from "./network.ts";
import { firstNode } from "./nodes.ts";
import { ownPidNamespace } from "./processes.ts";
import { imageNames, layoutsIn, serveRegistry } from "./registry.ts";
import { attempt, run } from "./shell.ts";
import { writeStatus } from "./status.ts";
import { until } from "./until.ts";
import { keepRunning } from "./supervise.ts";
import { toolPath } from "./tools.ts";

export async function superviseCluster(root: string, layouts: readonly string[]): Promise<never> {
  const layout = layoutOf(root);
  try {
    await prepare(layout);
    serveRegistry(() => [...layoutsIn(layout.images), ...layouts]);
    await start(layout, layouts.flatMap(imageNames));
    await writeStatus(layout, { phase: "ready", ready: true });
  } catch (error) {
    await writeStatus(layout, { phase: "failed", ready: false, error: String(error) });
    throw error;
  }
  return await new Promise<never>(() => {});
}

async function prepare(layout: Layout): Promise<void> {
  await writePhase(layout, "preparing the state folder");
  await clearState(layout);
  const namespace = ownPidNamespace();
  await writeFile(layout.pidNamespace, namespace);
  for (const folder of [layout.logs, layout.etcd, layout.volumes, layout.containerd])
    await mkdir(folder, { recursive: true });
  await hideMachineFolders(layout);
  await createCgroup();
  await createNetwork(namespace);
  await writeCredentials(layout);
  await writeConfigFiles(layout);
}

/** Deletes everything of an earlier run except its images and what this run has already written. */
async function clearState(layout: Layout): Promise<void> {
  const kept = new Set(
    [layout.containerd, layout.supervisorPid, layout.supervisorLog, layout.status].map((path) => basename(path)),
  );
  for (const entry of await readdir(layout.root)) {
    if (!kept.has(entry)) await rm(join(layout.root, entry), { recursive: true, force: true });
  }
}

async function hideMachineFolders(layout: Layout): Promise<void> {
  // Volumes that the kubelet mounts must appear in running containers.
  await run(["mount", "--make-rshared", "/"]);
  for (const folder of privateFolders) {
    const own = privateFolder(layout, folder);
    await mkdir(own, { recursive: true });
    await mkdir(folder, { recursive: true });
    await run(["mount", "--bind", own, folder]);
  }
}

async function start(layout: Layout, images: readonly string[]): Promise<void> {
  const all = components(layout);
  const startThose = (which: (name: string) => boolean): void => {
    for (const component of all) if (which(component.name)) keepRunning(component, layout.logs);
  };
  const apiServer = new Set(["slirp4netns", "etcd", "kube-apiserver"]);
  startThose((name) => apiServer.has(name));
  await loadImages(layout, images);
  startThose((name) => name === "containerd");
  await writePhase(layout, "waiting for the API server");
  await until("the API server to be ready", async () => (await kubectl(layout, "get", "--raw", "/readyz")) === 0);
  // Before, these would fail and back off.
  startThose((name) => name !== "containerd" && !apiServer.has(name));
  await until("the bootstrap objects to be applied", async () => {
    return (await kubectl(layout, "apply", "-f", join(layout.config, "bootstrap.json"))) === 0;
  });
  await writePhase(layout, "waiting for the node");
  await until("the node to be Ready", async () => {
    return (await kubectl(layout, "wait", "--for=condition=Ready", `node/${firstNode.name}`, "--timeout=5s")) === 0;
  });
  if (existsSync(toolPath("coredns"))) {
    await writePhase(layout, "waiting for DNS");
    await until("DNS to be ready", isDnsReady);
  }
  await until(
    "service accounts to exist",
    async () => (await kubectl(layout, "get", "serviceaccount", "default")) === 0,
  );
}

/** Loads missing images into the store and removes the containers of a killed run, before any pod can start. */
async function loadImages(layout: Layout, images: readonly string[]): Promise<void> {
  const log = Bun.file(join(layout.logs, "image-store.log"));
  const store = Bun.spawn(inClusterNetwork(storeCommand(layout)), { stdout: log, stderr: log });
  try {
    await until("the image store to be ready", async () => (await attempt(ctr("version"))).code === 0);
    const stale = (await run(ctr("containers", "list", "-q"))).split("\n").filter(Boolean);
    if (stale.length > 0) await run(ctr("containers", "rm", ...stale));
    for (const image of images) {
      await writePhase(layout, `loading ${image}`);
      await run(ctr("images", "pull", "--hosts-dir", registriesFolder(layout), image));
    }
  } finally {
    store.kill();
    await store.exited;
  }
}

async function kubectl(layout: Layout, ...args: string[]): Promise<number> {
  const result = await attempt([toolPath("kubectl"), `--kubeconfig=${layout.kubeconfig}`, ...args]);
  return result.code;
}

async function writePhase(layout: Layout, phase: string): Promise<void> {
  await writeStatus(layout, { phase, ready: false });
}
