/** A protected Stack whose deletion no policy denied: by the namespace controller or the garbage collector. */
import { expect, test } from "bun:test";
import { stackFinalizer } from "@pko/api";
import { builtin } from "@pko/kube";
import { stacks } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { apiServerWithApi } from "../api/install.ts";
import { condition, reasonOf, Stage, testTimeoutMs } from "./harness.ts";

const namespaceController = "system:serviceaccount:kube-system:namespace-controller";

async function deleteAs(user: string, stage: Stage, name: string): Promise<void> {
  const client = await (await apiServerWithApi()).clientFor({ name: user });
  await client.delete(stacks, { namespace: stage.namespace, name });
}

async function change(stage: Stage, name: string, spec: object): Promise<void> {
  const patch = { type: "merge", body: { spec } } as const;
  await stage.client.patch(stacks, { namespace: stage.namespace, name }, { patch });
}

async function eventsOf(stage: Stage, reason: string): Promise<number> {
  const { items } = await stage.client.list(builtin.events, { namespace: stage.namespace });
  return items.filter((event) => event.reason === reason).length;
}

test(
  "it is kept and nothing is destroyed until protect is false; then it is destroyed",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    await stage.stack("web", { destroyOnFinalize: true, protect: true });
    await stage.isReady("web");
    await deleteAs(namespaceController, stage, "web");
    const kept = await stage.becomes("web", "protected", (stack) => reasonOf(stack) === "Protected");
    expect(kept.metadata.finalizers).toEqual([stackFinalizer]);
    expect(condition(kept, "Stalled")?.message).toContain("set spec.protect to false");
    await waitFor(async () => (await eventsOf(stage, "StackProtected")) === 1, { what: "the event" });

    await stage.annotate("web", { "pulumi.com/reconciliation-request": "1" });
    stage.jump(86_400_000);
    await stage.fence();
    expect(stage.runs).toEqual(["up@1"]);

    await change(stage, "web", { protect: false });
    await stage.isDeleted("web");
    expect(stage.runs.at(-1)).toStartWith("destroy");
    expect(await eventsOf(stage, "StackProtected")).toBe(1);
  },
  testTimeoutMs,
);

test(
  "it is deleted without a destroy if destroyOnFinalize is set to false first",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    await stage.stack("web", { destroyOnFinalize: true, protect: true });
    await stage.isReady("web");
    await deleteAs("system:serviceaccount:kube-system:generic-garbage-collector", stage, "web");
    await stage.becomes("web", "protected", (stack) => reasonOf(stack) === "Protected");
    await change(stage, "web", { destroyOnFinalize: false });
    await stage.becomes("web", "still protected", (stack) =>
      Boolean(condition(stack, "Stalled")?.message.includes("keep its resources, set spec.protect to false")),
    );
    await change(stage, "web", { protect: false });
    await stage.isDeleted("web");
    expect(stage.runs).toEqual(["up@1"]);
  },
  testTimeoutMs,
);

test(
  "it is also kept in a terminating namespace, where no destroy can run after protect is false",
  async () => {
    await using stage = await Stage.set();
    stage.rights.expectForbidden(/because it is being terminated/);
    await stage.program("program");
    await stage.stack("web", { destroyOnFinalize: true, protect: true });
    await stage.isReady("web");
    await stage.client.delete(builtin.namespaces, { name: stage.namespace });
    await deleteAs(namespaceController, stage, "web");
    await stage.becomes("web", "protected", (stack) => reasonOf(stack) === "Protected");
    await change(stage, "web", { protect: false });
    const blocked = await stage.becomes("web", "blocked", (stack) => reasonOf(stack) === "NamespaceTerminating");
    expect(blocked.metadata.finalizers).toEqual([stackFinalizer]);
    expect(stage.runs).toEqual(["up@1"]);
  },
  testTimeoutMs,
);
