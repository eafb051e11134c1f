/** Objects that existed before a Stack that needs their names: the operator does not touch them. */
import { expect, test } from "bun:test";
import { builtin } from "@pko/kube";
import { waitFor } from "@pko/testkit";

import {
  applyTo,
  deleteStack,
  isReady,
  listUpdates,
  newProgram,
  newSecret,
  newStack,
  readOutput,
  stackUntil,
  stalledBy,
  useScene,
} from "../harness.ts";

const slow = 300_000;
const scene = useScene("ownership");
const reason = "OwnershipConflict";
const ref = (name: string) => ({ namespace: scene.namespace, name });

/** A workload of another owner that has the name of a workspace's StatefulSet. */
function otherStatefulSet(name: string): object {
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
    await applyTo(scene, otherStatefulSet("dev-workspace"));
    const read = async () => ({
      set: await client.get(builtin.statefulSets, ref("dev-workspace")),
      pod: await client.get(builtin.pods, ref("dev-workspace-0")),
    });
    const before = await waitFor(
      async () => {
        const both = await read();
        return both.set.status?.readyReplicas === 1 && both.pod.status?.phase === "Running" && both;
      },
      { timeoutMs: slow / 3, pollMs: 500, what: "the pod of the StatefulSet to run" },
    );
    await applyTo(scene, newProgram("dev", { outputs: { a: 1 } }), newStack("dev", { programRef: { name: "dev" } }));
    await stalledBy(scene, "dev", {
      reason,
      message: `StatefulSet ${scene.namespace}/dev-workspace (without an owner)`,
    });
    expect(await read()).toEqual(before);
    await deleteStack(scene, "dev");
    await waitFor(async () => (await client.find(builtin.secrets, ref("dev-workspace-tls"))) === undefined);
    expect(await read()).toEqual(before);
  },
  slow,
);

test(
  "a Secret shop-outputs stays unchanged; the update of Stack shop succeeds, and its outputs are written once the Secret is deleted",
  async () => {
    const { client } = scene;
    await applyTo(scene, newSecret("shop-outputs", { password: "hush" }));
    const read = () => client.get(builtin.secrets, ref("shop-outputs"));
    const before = await read();
    await applyTo(
      scene,
      newProgram("shop", { outputs: { url: "https://shop.example.com" } }),
      newStack("shop", { programRef: { name: "shop" } }),
    );
    const stack = await stalledBy(scene, "shop", { reason, message: `Secret ${scene.namespace}/shop-outputs` });
    expect(stack.status?.lastUpdate).toMatchObject({ state: "succeeded", outputsPending: true });
    expect(await read()).toEqual(before);
    await client.delete(builtin.secrets, ref("shop-outputs"));
    await stackUntil(scene, "shop", isReady);
    expect(await readOutput(scene, "shop", "url")).toBe("https://shop.example.com");
    expect(await listUpdates(scene, "shop")).toHaveLength(1);
  },
  slow,
);
