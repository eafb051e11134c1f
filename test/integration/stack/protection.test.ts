/** A protected Stack whose deletion no policy denied: by the namespace controller or the garbage collector. */
import { expect, test } from "bun:test";
import { stackFinalizer } from "@pko/api";
import { builtin } from "@pko/kube";
import { stacks } from "@pko/operator";

import { apiServerWithApi } from "../api/install.ts";
import { condition, reasonOf, StackScene, testTimeoutMs } from "./scene.ts";

const namespaceController = "system:serviceaccount:kube-system:namespace-controller";

async function deleteAs(user: string, scene: StackScene, name: string): Promise<void> {
  const client = await (await apiServerWithApi()).clientFor({ name: user });
  await client.delete(stacks, { namespace: scene.namespace, name });
}

async function change(scene: StackScene, name: string, spec: object): Promise<void> {
  const patch = { type: "merge", body: { spec } } as const;
  await scene.client.patch(stacks, { namespace: scene.namespace, name }, { patch });
}

test(
  "it is kept and nothing is destroyed until protect is false; then it is destroyed",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    await scene.stack("web", { destroyOnFinalize: true, protect: true });
    await scene.isReady("web");
    await deleteAs(namespaceController, scene, "web");
    const kept = await scene.becomes("web", "protected", (stack) => reasonOf(stack) === "Protected");
    expect(kept.metadata.finalizers).toEqual([stackFinalizer]);
    expect(condition(kept, "Stalled")?.message).toContain("set spec.protect to false");
    await scene.events("StackProtected");

    await scene.annotate("web", { "pulumi.com/reconciliation-request": "1" });
    scene.jump(86_400_000);
    await scene.fence();
    expect(scene.runs).toEqual(["up@1"]);

    await change(scene, "web", { protect: false });
    await scene.isDeleted("web");
    expect(scene.runs.at(-1)).toStartWith("destroy");
    expect(await scene.events("StackProtected")).toHaveLength(1);
  },
  testTimeoutMs,
);

test(
  "it is deleted without a destroy if destroyOnFinalize is set to false first",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    await scene.stack("web", { destroyOnFinalize: true, protect: true });
    await scene.isReady("web");
    await deleteAs("system:serviceaccount:kube-system:generic-garbage-collector", scene, "web");
    await scene.becomes("web", "protected", (stack) => reasonOf(stack) === "Protected");
    await change(scene, "web", { destroyOnFinalize: false });
    await scene.becomes("web", "still protected", (stack) =>
      Boolean(condition(stack, "Stalled")?.message.includes("keep its resources, set spec.protect to false")),
    );
    await change(scene, "web", { protect: false });
    await scene.isDeleted("web");
    expect(scene.runs).toEqual(["up@1"]);
  },
  testTimeoutMs,
);

test(
  "it is also kept in a terminating namespace, where no destroy can run after protect is false",
  async () => {
    await using scene = await StackScene.open();
    scene.rights.expectForbidden(/because it is being terminated/);
    await scene.program("program");
    await scene.stack("web", { destroyOnFinalize: true, protect: true });
    await scene.isReady("web");
    await scene.client.delete(builtin.namespaces, { name: scene.namespace });
    await deleteAs(namespaceController, scene, "web");
    await scene.becomes("web", "protected", (stack) => reasonOf(stack) === "Protected");
    await change(scene, "web", { protect: false });
    const blocked = await scene.becomes("web", "blocked", (stack) => reasonOf(stack) === "NamespaceTerminating");
    expect(blocked.metadata.finalizers).toEqual([stackFinalizer]);
    expect(scene.runs).toEqual(["up@1"]);
  },
  testTimeoutMs,
);
