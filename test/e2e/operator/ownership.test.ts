/** What users had before a Stack came that needs its name: their workloads run on, and their Secrets stay theirs. */
import { expect, test } from "bun:test";
import { builtin } from "@pko/kube";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  deleteStack,
  isReady,
  outputOf,
  programOf,
  secretOf,
  stackOf,
  stackUntil,
  stalledBy,
  updatesOf,
  useScene,
} from "../harness.ts";

const slow = 300_000;
const scene = useScene("ownership");
const reason = "OwnershipConflict";
const ref = (name: string) => ({ namespace: scene.namespace, name });

/** A workload of its own, with the name of a workspace's. */
function theirStatefulSet(name: string): object {
  const labels = { app: name };
  const container = { name: "app", image: "docker.io/library/busybox:latest", command: ["sleep", "1000000"] };
  const template = { metadata: { labels }, spec: { terminationGracePeriodSeconds: 1, containers: [container] } };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: { name },
    spec: { serviceName: name, selector: { matchLabels: labels }, template },
  };
}

test(
  "a StatefulSet dev-workspace with a running pod survives the creation and deletion of Stack dev",
  async () => {
    const { client } = scene;
    await applyTo(scene, theirStatefulSet("dev-workspace"));
    const read = async () => ({
      set: await client.get(builtin.statefulSets, ref("dev-workspace")),
      pod: await client.get(builtin.pods, ref("dev-workspace-0")),
    });
    const before = await waitFor(
      async () => {
        const both = await read();
        return both.set.status?.readyReplicas === 1 && both.pod.status?.phase === "Running" && both;
      },
      { timeoutMs: slow / 3, pollMs: 500, what: "their pod to run" },
    );
    await applyTo(scene, programOf("dev", { outputs: { a: 1 } }), stackOf("dev", { programRef: { name: "dev" } }));
    await stalledBy(scene, "dev", { reason, words: `StatefulSet ${scene.namespace}/dev-workspace (without an owner)` });
    expect(await read()).toEqual(before);
    await deleteStack(scene, "dev");
    await waitFor(async () => (await client.find(builtin.secrets, ref("dev-workspace-tls"))) === undefined);
    expect(await read()).toEqual(before);
  },
  slow,
);

test(
  "a Secret shop-outputs stays as it is; the update of Stack shop counts, and its outputs follow once the name is free",
  async () => {
    const { client } = scene;
    await applyTo(scene, secretOf("shop-outputs", { theirs: "hush" }));
    const read = () => client.get(builtin.secrets, ref("shop-outputs"));
    const before = await read();
    await applyTo(
      scene,
      programOf("shop", { outputs: { url: "https://shop.example.com" } }),
      stackOf("shop", { programRef: { name: "shop" } }),
    );
    const stack = await stalledBy(scene, "shop", { reason, words: `Secret ${scene.namespace}/shop-outputs` });
    expect(stack.status?.lastUpdate).toMatchObject({ state: "succeeded", outputsPending: true });
    expect(await read()).toEqual(before);
    await client.delete(builtin.secrets, ref("shop-outputs"));
    await stackUntil(scene, "shop", isReady);
    expect(await outputOf(scene, "shop", "url")).toBe("https://shop.example.com");
    expect(await updatesOf(scene, "shop")).toHaveLength(1);
  },
  slow,
);
