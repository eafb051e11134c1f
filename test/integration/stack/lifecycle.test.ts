/** The life cycle of a Stack, from its first update to its deletion. */
import { expect, test } from "bun:test";
import { labelsOfStack, reconcileRequestAnnotation, stackFinalizer } from "@pko/api";
import { builtin, refKey } from "@pko/kube";
import { programs, updates, workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { condition, testTimeoutMs, reasonOf, StackScene } from "./scene.ts";

test(
  "a Program is deployed, followed, resynced on request, and destroyed",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    await scene.stack("web", { destroyOnFinalize: true });
    const first = await scene.isReady("web", "1");
    expect(first.metadata.finalizers).toEqual([stackFinalizer]);
    expect(first.status?.lastUpdate).toMatchObject({ state: "succeeded", type: "up", failures: 0, generation: 1 });
    expect(first.status?.projectInfo).toEqual({ name: "project", runtime: "yaml" });
    expect(first.status?.currentUpdate).toBeUndefined();
    expect(scene.runs).toEqual(["up@1"]);

    await scene.program("program", "two");
    await scene.isReady("web", "2");
    expect(scene.runs).toEqual(["up@1", "up@2"]);

    await scene.annotate("web", { [reconcileRequestAnnotation]: "please" });
    const echoed = await scene.becomes(
      "web",
      "run again",
      ({ status }) => status?.lastUpdate?.reconcileRequest === "please",
    );
    expect(echoed.status?.observedReconcileRequest).toBe("please");
    expect(scene.runs).toEqual(["up@1", "up@2", "up@2"]);

    await scene.delete("web");
    await scene.isDeleted("web");
    expect(scene.runs).toEqual(["up@1", "up@2", "up@2", "destroy@2"]);
    const { spec: destroy } = scene.simulator.runs.at(-1) ?? {};
    expect(destroy).toMatchObject({ type: "destroy" });
    expect(destroy).not.toHaveProperty("remove");
    // No Update is left over with a finalizer.
    await waitFor(async () => (await scene.client.list(updates, { namespace: scene.namespace })).items.length === 0);
  },
  testTimeoutMs,
);

test(
  "without destroyOnFinalize the Stack is deleted immediately, together with its Updates",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    scene.simulator.script.update = () => ({ end: "never" });
    await scene.stack("web");
    await waitFor(() => scene.runs.length === 1);
    await scene.delete("web");
    await scene.isDeleted("web");
    await waitFor(async () => (await scene.client.list(updates, { namespace: scene.namespace })).items.length === 0);
    expect(scene.runs).toEqual(["up@1"]);
  },
  testTimeoutMs,
);

test(
  "a failed update is retried later, and stalls the Stack after the third time",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    scene.simulator.script.update = () => ({ end: "failed", message: "error: no such bucket" });
    await scene.stack("web", { destroyOnFinalize: true });
    const failedOnce = await scene.becomes("web", "failed once", ({ status }) => status?.lastUpdate?.failures === 1);
    expect(reasonOf(failedOnce)).toBe("RetryingAfterFailure");
    expect(condition(failedOnce, "Reconciling")?.message).toMatch(/no such bucket\nIt will be retried at 20/);
    scene.jump(5_000);
    await scene.fence();
    // On a busy machine, the retry may be due by now.
    const retryAt = Date.parse(failedOnce.status?.next?.time ?? "");
    expect(retryAt).not.toBeNaN();
    if (scene.clock.now() < retryAt) expect(scene.runs.length).toBe(1);
    scene.jump(6_000);
    await scene.becomes("web", "failed twice", ({ status }) => status?.lastUpdate?.failures === 2);
    scene.jump(31_000);
    const stalled = await scene.becomes(
      "web",
      "failed three times",
      ({ status }) => status?.lastUpdate?.failures === 3,
    );
    expect(reasonOf(stalled)).toBe("UpdateFailed");
    scene.simulator.script.update = () => ({ end: "succeeded" });
    scene.jump(91_000);
    await scene.isReady("web", "1");
    expect(scene.runs).toEqual(["up@1", "up@1", "up@1", "up@1"]);
  },
  testTimeoutMs,
);

test(
  "a failed destroy keeps the Stack; the destroy works without the source",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    await scene.stack("web", { destroyOnFinalize: true });
    await scene.isReady("web");
    const program = scene.ref("program");
    await scene.client.delete(programs, program);
    const { store } = scene.operator.stores.programs;
    await waitFor(() => !store.get(refKey(program)), { what: "the operator to see that the Program is deleted" });
    // The first attempt only: on a busy machine, the second one may start before the test continues.
    let failing: string | undefined;
    scene.simulator.script.update = ({ metadata: { uid } }) =>
      (failing ??= uid) === uid ? { end: "failed", message: "not empty" } : { end: "succeeded" };
    await scene.delete("web");
    const kept = await scene.becomes("web", "kept", ({ status }) => status?.lastUpdate?.type === "destroy");
    expect(kept.metadata.finalizers).toEqual([stackFinalizer]);
    expect(reasonOf(kept)).toBe("RetryingAfterFailure");
    const workspace = await scene.client.get(workspaces, { namespace: scene.namespace, name: "web" });
    expect(workspace.spec?.projectInfo).toEqual({ name: "project", runtime: "yaml" });
    expect(workspace.spec?.program).toBeUndefined();
    scene.jump(11_000);
    await scene.isDeleted("web");
    expect(scene.runs).toEqual(["up@1", "destroy@1", "destroy@1"]);
  },
  testTimeoutMs,
);

test(
  "outputs are stored in a Secret with a fixed name, masked in the status, and passed to other Stacks",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    let kubeconfig = "first";
    scene.simulator.script.update = () => ({
      end: "succeeded",
      outputs: { kubeconfig, url: "http://web", list: [1, 2] },
      secrets: ["kubeconfig"],
    });
    await scene.stack("apps", {
      prerequisites: [{ type: "Stack", requirement: "cluster", succeededWithinDuration: "30m" }],
      envRefs: {
        KUBECONFIG: { type: "StackOutput", stack: "cluster", output: "kubeconfig" },
        URL: { type: "StackOutput", stack: "cluster", output: "url" },
      },
    });
    const waiting = await scene.becomes("apps", "waiting", (stack) => reasonOf(stack) === "PrerequisiteNotSatisfied");
    expect(waiting.status?.waiting?.for).toBe("Stack cluster");
    await scene.stack("cluster");
    const cluster = await scene.isReady("cluster");
    expect(cluster.status?.outputs).toEqual({ kubeconfig: "[secret]", url: "http://web", list: [1, 2] });
    const secret = await scene.client.get(builtin.secrets, { namespace: scene.namespace, name: "cluster-outputs" });
    const data = Object.fromEntries(Object.entries(secret.data ?? {}).map(([key, value]) => [key, atob(value)]));
    expect(data).toEqual({ kubeconfig: "first", url: "http://web", list: "[1,2]" });
    await scene.isReady("apps");
    const workspace = await scene.client.get(workspaces, { namespace: scene.namespace, name: "apps" });
    const folder = "/var/run/secrets/stacks.pulumi.com/secrets/cluster-outputs";
    expect(workspace.spec?.env).toEqual([
      { name: "KUBECONFIG", value: `${folder}/kubeconfig` },
      { name: "URL", valueFrom: { secretKeyRef: { name: "cluster-outputs", key: "url" } } },
    ]);
    expect(workspace.spec?.podTemplate?.spec?.containers?.[0]?.volumeMounts?.[0]?.mountPath).toBe(folder);

    // A changed output triggers an update.
    const { length } = scene.runs;
    kubeconfig = "second";
    await scene.annotate("cluster", { [reconcileRequestAnnotation]: "1" });
    await waitFor(() => scene.runs.length === length + 2, { timeoutMs: 45_000 });
    await scene.isReady("apps");
    await scene.annotate("cluster", { [reconcileRequestAnnotation]: "2" });
    await scene.becomes("cluster", "run", ({ status }) => status?.lastUpdate?.reconcileRequest === "2");
    await scene.fence();
    expect(scene.runs.length).toBe(length + 3);
  },
  testTimeoutMs,
);

test(
  "the finalizer of an Update is removed if its Stack was deleted, also after the garbage collector has removed the owner reference",
  async () => {
    await using scene = await StackScene.open();
    const { namespace, client } = scene;
    const ref = { namespace, name: "web-orphan" };
    await client.create(updates, {
      apiVersion: updates.apiVersion,
      kind: updates.kind,
      metadata: { ...ref, finalizers: [stackFinalizer], labels: labelsOfStack("web") },
      spec: { type: "up", workspaceName: "web", stackName: "dev" },
    });
    await client.delete(updates, ref);
    await waitFor(async () => (await client.find(updates, ref)) === undefined, { timeoutMs: 45_000, what: "its end" });
  },
  testTimeoutMs,
);

test(
  "an Update whose Workspace was deleted does not block the Stack",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    scene.simulator.script.update = () => ({ end: "never" });
    await scene.stack("web");
    await waitFor(() => scene.runs.length === 1);
    const ref = { namespace: scene.namespace, name: "web" };
    await scene.client.delete(workspaces, ref);
    const withdrawn = await scene.becomes("web", "failed", ({ status }) => status?.lastUpdate?.state === "failed");
    expect(reasonOf(withdrawn)).toBe("RetryingAfterFailure");
    scene.simulator.script.update = () => ({ end: "succeeded" });
    scene.jump(11_000);
    await scene.isReady("web");
    expect(scene.runs).toEqual(["up@1", "up@1"]);
  },
  testTimeoutMs,
);

test(
  "several changes while an update runs lead to one update",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    scene.simulator.script.update = () => ({ end: "never" });
    await scene.stack("web");
    await waitFor(() => scene.runs.length === 1);
    for (const text of ["a", "b", "c", "d"]) await scene.program("program", text);
    await scene.stack("web", { config: { "web:a": 1 } });
    await scene.annotate("web", { [reconcileRequestAnnotation]: "now" });
    const { programs, stacks } = scene.operator.stores;
    const areSeen = (): boolean =>
      programs.store.get(`${scene.namespace}/program`)?.metadata.generation === 5 &&
      stacks.store.get(`${scene.namespace}/web`)?.metadata.annotations?.[reconcileRequestAnnotation] === "now";
    await waitFor(areSeen, { what: "the changes in the stores" });
    scene.simulator.script.update = () => ({ end: "succeeded" });
    await scene.isReady("web", "5");
    expect(scene.runs).toEqual(["up@1", "up@5"]);
  },
  testTimeoutMs,
);

test(
  "a Stack may be created before its Program",
  async () => {
    await using scene = await StackScene.open();
    await scene.stack("web");
    await scene.becomes("web", "waiting", (stack) => reasonOf(stack) === "SourceUnavailable");
    await scene.program("program");
    await scene.isReady("web", "1");
  },
  testTimeoutMs,
);

test(
  "a Workspace that never becomes ready can be fixed though an Update waits for it",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program");
    scene.simulator.script.update = () => ({ end: "never" });
    await scene.stack("web", { destroyOnFinalize: true });
    await waitFor(() => scene.runs.length === 1);
    scene.simulator.script.workspace = ({ spec }) =>
      spec?.image === "good" ? { ready: true } : { waiting: "no image" };
    const hangs = async (): Promise<boolean> => {
      const { status } = await scene.client.get(workspaces, { namespace: scene.namespace, name: "web" });
      return status?.conditions?.[0]?.message === "no image";
    };
    await waitFor(hangs);
    scene.simulator.script.update = ({ metadata }) =>
      metadata.name === scene.simulator.runs[0]?.name ? { end: "never" } : { end: "succeeded" };
    await scene.stack("web", { destroyOnFinalize: true, workspaceTemplate: { spec: { image: "good" } } });
    await scene.isReady("web");
    expect(scene.runs).toEqual(["up@1", "up@1"]);
  },
  testTimeoutMs,
);
