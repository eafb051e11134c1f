/**
 * An interrupted run is reported as aborted. A program never runs twice at the same time, and the operator removes only its
 * own locks.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";

import { kubernetesVersion } from "@pko/cluster";

import {
  applyTo,
  execInPod,
  isReady,
  killPod,
  kubectl,
  localTest,
  newStack,
  podUid,
  podWith,
  reconcileAndWait,
  requestReconcile,
  slowProject,
  stackUntil,
  useScene,
} from "../harness.ts";
import { killAgent } from "./machine.ts";
import { expectRecovery, loggedStarts, waitForStart } from "./slow-runs.ts";

const slow = 600_000;
const scene = useScene("crashes");

describe("a slow update", () => {
  beforeAll(() => {
    // The first run does not end before it is interrupted.
    scene.git.create("slow").commit(slowProject(600, 5));
    scene.git.create("quick").commit(slowProject(0));
  });

  localTest(test.concurrent, "it kills a process of a pod from this machine")(
    "is aborted when its agent is killed, and the next one succeeds in the same pod",
    async () => {
      await deploy("container");
      await waitForStart(scene, "container");
      const pod = await podUid(scene, "container");
      killAgent(pod);
      await expectRecovery(scene, "container");
      expect(await podUid(scene, "container")).toBe(pod);
    },
    slow,
  );

  test.concurrent(
    "is aborted when its pod is killed, and the next one succeeds",
    async () => {
      await deploy("orphan");
      await waitForStart(scene, "orphan");
      await killPod(scene, "orphan");
      await expectRecovery(scene, "orphan");
    },
    slow,
  );

  test.concurrent(
    "is aborted when its pod is evicted, and the next one succeeds",
    async () => {
      await deploy("evicted");
      await waitForStart(scene, "evicted");
      const name = "evicted-workspace-0";
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: scene.namespace } };
      const path = `/api/v1/namespaces/${scene.namespace}/pods/${name}/eviction`;
      await kubectl(["create", "--raw", path, "-f", "-"], { input: JSON.stringify(eviction) });
      await expectRecovery(scene, "evicted");
    },
    slow,
  );

  memoryTest(
    "fails when it runs out of memory, and succeeds when it needs less",
    async () => {
      const limited = { name: "pulumi", resources: { limits: { memory: "500Mi" } } };
      await deploy("hungry", { config: { "slow:hunger": "true" } }, limited);
      const failed = await stackUntil(scene, "hungry", ({ status }) => status?.lastUpdate?.state === "failed");
      // The kernel kills the process of the provider, which its shell reports.
      expect(failed.status?.lastUpdate?.message).toMatch(/^Killed$/m);
      await deploy("hungry", { config: { "slow:hunger": "false" } }, limited);
      await stackUntil(scene, "hungry", isReady);
      expect(await loggedStarts(scene, "hungry")).not.toContain("overlap");
    },
    slow,
  );

  test.concurrent(
    "does not remove a lock of another process, and continues once that lock is removed",
    async () => {
      await deploy("locked", scene.git.source("quick"));
      await stackUntil(scene, "locked", isReady);
      const folder = "/state/.pulumi/locks/organization/slow/locked";
      const lock = { pid: 1, username: "someone", hostname: "elsewhere", timestamp: "2026-01-01T00:00:00Z" };
      await execInPod(scene, "locked", `mkdir -p ${folder} && echo '${JSON.stringify(lock)}' > ${folder}/theirs.json`);
      await requestReconcile(scene, "locked", "blocked");
      const blocked = await stackUntil(
        scene,
        "locked",
        ({ status }) => status?.lastUpdate?.failure === "conflict" && status.lastUpdate.reconcileRequest === "blocked",
      );
      expect(blocked.status?.conditions?.map(({ reason }) => reason)).toContain("UpdateConflict");
      expect(await execInPod(scene, "locked", `ls ${folder}`)).toBe("theirs.json\n");
      await execInPod(scene, "locked", `rm ${folder}/theirs.json`);
      await reconcileAndWait(scene, "locked", "free");
    },
    slow,
  );
});

/** The kernel must kill only the process that is out of memory, which the kubelet of the local cluster is configured for. */
function memoryTest(...[name, run, timeoutMs]: Parameters<ReturnType<typeof localTest>>): void {
  const isUnified = existsSync("/sys/fs/cgroup/cgroup.controllers");
  if (isUnified && kubernetesVersion(process.env["KUBE"]).startsWith("1.31.")) {
    const why =
      "with cgroups v2 and Kubernetes 1.31, which lacks singleProcessOOMKill, the agent is killed with its program";
    test.skip(`${name}: ${why}`, () => undefined);
    return;
  }
  localTest(test.concurrent, "with cgroups v2, the agent would be killed with its program")(name, run, timeoutMs);
}

async function deploy(name: string, spec: object = {}, container: object = {}): Promise<void> {
  const stack = { workspaceTemplate: podWith({ container }), ...scene.git.source("slow"), ...spec };
  await applyTo(scene, newStack(name, stack));
}
