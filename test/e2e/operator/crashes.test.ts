/**
 * A run belongs to its agent: what kills the operator or the kubelet does not touch it, and what kills the run is told as
 * it is. Whatever dies, a program is never run twice at once, and a lock is taken away only if it was ours.
 */
import { beforeAll, describe, expect, test } from "bun:test";

import type { Update } from "@pko/api";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  inPod,
  isReady,
  killPod,
  kubectl,
  podOf,
  podWith,
  reconcile,
  requested,
  stackOf,
  stackUntil,
  updatesOf,
  useScene,
} from "../harness.ts";
import { killAgent, killKubelet, kubelets } from "./machine.ts";
import { slowProject } from "./programs.ts";

const slow = 600_000;
const scene = useScene("crashes");

describe("a slow update", () => {
  beforeAll(() => void scene.git.create("slow").commit(slowProject(10)));

  test(
    "goes on while the operator and the kubelet are killed, and is run once",
    async () => {
      await deploy("survivor");
      await begun("survivor");
      const [running] = await updatesOf(scene, "survivor");
      await scene.operator.crash();
      const dead = await killKubelet();
      await waitFor(async () => (await kubelets()).some((pid) => pid !== dead), { what: "another kubelet" });
      await stackUntil(scene, "survivor", isReady);
      const updates = await updatesOf(scene, "survivor");
      expect(updates.map(({ metadata }) => metadata.name)).toEqual([running?.metadata.name]);
      expect(await told("survivor")).toEqual(["begun"]);
    },
    slow,
  );

  test.concurrent(
    "is told as interrupted when its agent is killed, and the next one succeeds in the same pod",
    async () => {
      await deploy("container");
      await begun("container");
      const pod = await podOf(scene, "container");
      killAgent(pod);
      await recovers("container");
      expect(await podOf(scene, "container")).toBe(pod);
    },
    slow,
  );

  test.concurrent(
    "is told as interrupted when its pod is killed, and the next one succeeds",
    async () => {
      await deploy("orphan");
      await begun("orphan");
      await killPod(scene, "orphan");
      await recovers("orphan");
    },
    slow,
  );

  test.concurrent(
    "is told as interrupted when its pod is evicted, and the next one succeeds",
    async () => {
      await deploy("evicted");
      await begun("evicted");
      const name = "evicted-workspace-0";
      const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace: scene.namespace } };
      const path = `/api/v1/namespaces/${scene.namespace}/pods/${name}/eviction`;
      await kubectl(["create", "--raw", path, "-f", "-"], { input: JSON.stringify(eviction) });
      await recovers("evicted");
    },
    slow,
  );

  test.concurrent(
    "that runs out of memory fails, and succeeds when it needs less",
    async () => {
      const limited = { name: "pulumi", resources: { limits: { memory: "500Mi" } } };
      await deploy("hungry", { config: { "slow:hunger": "true" } }, limited);
      const failed = await stackUntil(scene, "hungry", ({ status }) => status?.lastUpdate?.state === "failed");
      expect(failed.status?.lastUpdate?.message).not.toBe("");
      await deploy("hungry", { config: { "slow:hunger": "false" } }, limited);
      await stackUntil(scene, "hungry", isReady);
      expect(await told("hungry")).not.toContain("overlap");
    },
    slow,
  );

  test.concurrent(
    "does not take away the lock of another, and goes on when that is gone",
    async () => {
      await deploy("locked");
      await begun("locked");
      await stackUntil(scene, "locked", isReady);
      const folder = "/state/.pulumi/locks/organization/slow/locked";
      const lock = { pid: 1, username: "someone", hostname: "elsewhere", timestamp: "2026-01-01T00:00:00Z" };
      await inPod(scene, "locked", `mkdir -p ${folder} && echo '${JSON.stringify(lock)}' > ${folder}/theirs.json`);
      await reconcile(scene, "locked", "blocked");
      const blocked = await stackUntil(
        scene,
        "locked",
        ({ status }) => status?.lastUpdate?.failure === "conflict" && status.lastUpdate.reconcileRequest === "blocked",
      );
      expect(blocked.status?.conditions?.map(({ reason }) => reason)).toContain("UpdateConflict");
      expect(await inPod(scene, "locked", `ls ${folder}`)).toBe("theirs.json\n");
      await inPod(scene, "locked", `rm ${folder}/theirs.json`);
      await requested(scene, "locked", "free");
    },
    slow,
  );
});

async function deploy(name: string, spec: object = {}, container: object = {}): Promise<void> {
  const source = { projectRepo: scene.git.url("slow"), branch: "main" };
  await applyTo(scene, stackOf(name, { workspaceTemplate: podWith({ container }), ...source, ...spec }));
}

/** The interrupted Update tells what befell it; a later one succeeds, after the lock that the first has left is gone. */
async function recovers(name: string): Promise<void> {
  await stackUntil(scene, name, isReady);
  const [first, ...others] = await updatesOf(scene, name);
  expect(endOf(first)).toBe("Aborted");
  expect(endOf(others.at(-1))).toBe("UpdateSucceeded");
  expect(await told(name)).toEqual(["begun", "begun"]);
}

function endOf(update: Update | undefined): string | undefined {
  return update?.status?.conditions?.find(({ type }) => type === "Failed")?.reason;
}

async function begun(name: string): Promise<void> {
  await waitFor(async () => (await told(name)).length > 0, {
    timeoutMs: 240_000,
    what: `the program of ${name} to begin`,
  });
}

/** What the program has told of its beginnings. */
async function told(name: string): Promise<string[]> {
  return (await inPod(scene, name, `cat /state/log-${name} 2>/dev/null || true`)).split("\n").filter(Boolean);
}
