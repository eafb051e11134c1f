/** The local cluster recovers when any of its programs is killed, and leaves nothing behind when it ends. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  clusterKubeconfig,
  clusterNamespace,
  givenKubeconfig,
  network,
  processesIn,
  runningSupervisor,
  stateRoot,
} from "@pko/cluster";
import { kubectlFor, waitFor } from "@pko/testkit";

import { nothing, remains } from "./machine.ts";
import { cluster } from "./make.ts";

const startTimeoutMs = 180_000;
/** After all programs were killed. */
const recoveryTimeoutMs = 400_000;
const kubectl = kubectlFor({
  kubeconfig: clusterKubeconfig(),
  cacheFolder: mkdtempSync(join(tmpdir(), "pko-kubectl-")),
});

const components = [
  "etcd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
  "kube-proxy",
  "containerd",
  "coredns",
  "slirp4netns",
  "host-path-provisioner",
];

// The user's own cluster must not be killed.
describe.skipIf(givenKubeconfig !== undefined)("the local cluster", () => {
  let namespace = "";

  beforeAll(async () => {
    await cluster("down");
    const { code, output } = await cluster("up");
    if (code !== 0) throw new Error(output);
    namespace = (await clusterNamespace(stateRoot)) ?? "";
  }, startTimeoutMs);

  afterAll(async () => {
    await cluster("down");
  });

  test("reports that it is already running when it is started twice", async () => {
    const { code, output } = await cluster("up");
    expect(code).toBe(0);
    expect(output).toContain("already running");
  });

  test.each(components)("restarts %s after it was killed", async (name) => {
    const before = findComponent(namespace, name);
    process.kill(before, "SIGKILL");
    const after = await waitFor(() => findOther(namespace, name, before), {
      timeoutMs: 30_000,
      what: `${name} to be restarted`,
    });
    expect(after).not.toBe(before);
  });

  test(
    "runs pods after all its programs have restarted",
    async () => {
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "after-the-kills" }, spec: podSpec };
      await waitFor(async () => (await kubectl(["get", "--raw", "/readyz"])) === "ok", {
        timeoutMs: 120_000,
        what: "the API server to be ready",
      });
      await kubectl(["apply", "-f", "-"], { input: JSON.stringify(pod) });
      const finished = ["wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/after-the-kills", "--timeout=150s"];
      expect(await kubectl(finished)).toContain("condition met");
    },
    recoveryTimeoutMs,
  );

  test("keeps the MAC address of the pods' gateway when pods start and end", () => {
    const inside = ["nsenter", `--net=/proc/${findComponent(namespace, "kubelet")}/ns/net`];
    const { stdout } = Bun.spawnSync([...inside, "ip", "-o", "link", "show", "cni0"]);
    expect(stdout.toString()).toContain(network.nodeHardware);
  });

  test(
    "leaves nothing running when its supervisor is killed, and another clone can start a cluster",
    async () => {
      const running = ["create", "deployment", "left-behind", "--image=busybox", "--replicas=3", "--", "sleep", "1000"];
      await kubectl(running);
      await kubectl(["wait", "--for=condition=Available", "deployment/left-behind", "--timeout=150s"]);
      const supervisor = processesIn(namespace).find(
        ({ command }) => command.includes("supervise") && command[0] !== "tini",
      );
      using _straggler = await stayInNetwork(namespace);
      process.kill(supervisor?.pid ?? 0, "SIGKILL");
      await waitFor(() => processesIn(namespace).length === 0, { what: "every process to end" });
      expect(await runningSupervisor(stateRoot)).toBeUndefined();

      // Another clone does not know the namespace of the killed cluster, and finds its network link.
      rmSync(join(stateRoot, "pid-namespace"));
      expect(existsSync(`/sys/class/net/${network.link}`)).toBeTrue();
      expect(await cluster("up")).toMatchObject({ code: 0 });
      expect(await kubectl(["get", "pods", "--all-namespaces", "--output=name"])).toBe("");
      namespace = (await clusterNamespace(stateRoot)) ?? "";
    },
    recoveryTimeoutMs,
  );

  test("stops without leaving a process, mount, link, route, rule or cgroup, and can be stopped twice", async () => {
    using _straggler = await stayInNetwork(namespace);
    expect(await cluster("down")).toMatchObject({ code: 0 });
    expect(remains(namespace)).toEqual(nothing);
    expect(await cluster("down")).toMatchObject({ code: 0 });
  });
});

const podSpec = {
  restartPolicy: "Never",
  containers: [{ name: "true", image: "busybox", command: ["true"] }],
};

function findComponent(namespace: string, name: string): number {
  const pid = findOther(namespace, name, -1);
  if (pid === undefined) throw new Error(`${name} is not running`);
  return pid;
}

/** The kernel keeps a network namespace, and its links, while a process is in it, as it does for open connections. */
async function stayInNetwork(namespace: string): Promise<Disposable> {
  const networkOf = (pid: number): string => `/proc/${pid}/ns/net`;
  const kubelet = findComponent(namespace, "kubelet");
  const wanted = readlinkSync(networkOf(kubelet));
  const straggler = Bun.spawn(["nsenter", `--net=${networkOf(kubelet)}`, "--", "sleep", "1000"]);
  await waitFor(() => readlinkSync(networkOf(straggler.pid)) === wanted, { what: "a process in the network" });
  return { [Symbol.dispose]: () => straggler.kill() };
}

/** `nsenter` executes the program in its place, so the command line contains only the program. */
function findOther(namespace: string, name: string, other: number): number | undefined {
  const matches = (command: readonly string[]): boolean =>
    command[0]?.endsWith(`/${name}`) === true ||
    command[0] === name ||
    (command[0]?.endsWith("/kube") === true && command[1] === name);
  return processesIn(namespace).find(({ pid, command }) => pid !== other && matches(command))?.pid;
}
