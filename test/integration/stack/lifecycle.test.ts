/** The life cycle of a Stack, from its first update to its deletion. */
import { expect, test } from "bun:test";
import { labelsOfStack, reconcileRequestAnnotation, stackFinalizer } from "@pko/api";
import { builtin } from "@pko/kube";
import { updates, workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { condition, testTimeoutMs, reasonOf, Stage } from "./harness.ts";

test(
  "a Program is deployed, followed, resynced on request, and destroyed",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    await stage.stack("web", { destroyOnFinalize: true });
    const first = await stage.isReady("web", "1");
    expect(first.metadata.finalizers).toEqual([stackFinalizer]);
    expect(first.status?.lastUpdate).toMatchObject({ state: "succeeded", type: "up", failures: 0, generation: 1 });
    expect(first.status?.projectInfo).toEqual({ name: "project", runtime: "yaml" });
    expect(first.status?.currentUpdate).toBeUndefined();
    expect(stage.runs).toEqual(["up@1"]);

    await stage.program("program", "two");
    await stage.isReady("web", "2");
    expect(stage.runs).toEqual(["up@1", "up@2"]);

    await stage.annotate("web", { [reconcileRequestAnnotation]: "please" });
    const echoed = await stage.becomes(
      "web",
      "run again",
      ({ status }) => status?.lastUpdate?.reconcileRequest === "please",
    );
    expect(echoed.status?.observedReconcileRequest).toBe("please");
    expect(stage.runs).toEqual(["up@1", "up@2", "up@2"]);

    await stage.delete("web");
    await stage.isDeleted("web");
    expect(stage.runs).toEqual(["up@1", "up@2", "up@2", "destroy@2"]);
    const { spec: destroy } = stage.simulator.runs.at(-1) ?? {};
    expect(destroy).toMatchObject({ type: "destroy" });
    expect(destroy).not.toHaveProperty("remove");
    // No Update is left over with a finalizer.
    await waitFor(async () => (await stage.client.list(updates, { namespace: stage.namespace })).items.length === 0);
  },
  testTimeoutMs,
);

test(
  "without destroyOnFinalize the Stack is deleted immediately, together with its Updates",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    stage.simulator.script.update = () => ({ end: "never" });
    await stage.stack("web");
    await waitFor(() => stage.runs.length === 1);
    await stage.delete("web");
    await stage.isDeleted("web");
    await waitFor(async () => (await stage.client.list(updates, { namespace: stage.namespace })).items.length === 0);
    expect(stage.runs).toEqual(["up@1"]);
  },
  testTimeoutMs,
);

test(
  "a failed update is retried later, and stalls the Stack after the third time",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    stage.simulator.script.update = () => ({ end: "failed", message: "error: no such bucket" });
    await stage.stack("web", { destroyOnFinalize: true });
    const failedOnce = await stage.becomes("web", "failed once", ({ status }) => status?.lastUpdate?.failures === 1);
    expect(reasonOf(failedOnce)).toBe("RetryingAfterFailure");
    expect(condition(failedOnce, "Reconciling")?.message).toMatch(/no such bucket\nIt will be retried at 20/);
    stage.jump(5_000);
    await stage.fence();
    expect(stage.runs.length).toBe(1);
    stage.jump(6_000);
    await stage.becomes("web", "failed twice", ({ status }) => status?.lastUpdate?.failures === 2);
    stage.jump(31_000);
    const stalled = await stage.becomes(
      "web",
      "failed three times",
      ({ status }) => status?.lastUpdate?.failures === 3,
    );
    expect(reasonOf(stalled)).toBe("UpdateFailed");
    stage.simulator.script.update = () => ({ end: "succeeded" });
    stage.jump(91_000);
    await stage.isReady("web", "1");
    expect(stage.runs).toEqual(["up@1", "up@1", "up@1", "up@1"]);
  },
  testTimeoutMs,
);

test(
  "a failed destroy keeps the Stack; the destroy works without the source",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    await stage.stack("web", { destroyOnFinalize: true });
    await stage.isReady("web");
    await stage.client.delete(
      { apiVersion: "pulumi.com/v1", kind: "Program", plural: "programs", namespaced: true },
      { namespace: stage.namespace, name: "program" },
    );
    stage.simulator.script.update = () => ({ end: "failed", message: "not empty" });
    await stage.delete("web");
    const kept = await stage.becomes("web", "kept", ({ status }) => status?.lastUpdate?.type === "destroy");
    expect(kept.metadata.finalizers).toEqual([stackFinalizer]);
    expect(reasonOf(kept)).toBe("RetryingAfterFailure");
    const workspace = await stage.client.get(workspaces, { namespace: stage.namespace, name: "web" });
    expect(workspace.spec?.projectInfo).toEqual({ name: "project", runtime: "yaml" });
    expect(workspace.spec?.program).toBeUndefined();
    stage.simulator.script.update = () => ({ end: "succeeded" });
    stage.jump(11_000);
    await stage.isDeleted("web");
    expect(stage.runs).toEqual(["up@1", "destroy@1", "destroy@1"]);
  },
  testTimeoutMs,
);

test(
  "outputs are stored in a Secret with a fixed name, masked in the status, and passed to other Stacks",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    let kubeconfig = "first";
    stage.simulator.script.update = () => ({
      end: "succeeded",
      outputs: { kubeconfig, url: "http://web", list: [1, 2] },
      secrets: ["kubeconfig"],
    });
    await stage.stack("apps", {
      prerequisites: [{ type: "Stack", requirement: "cluster", succeededWithinDuration: "30m" }],
      envRefs: {
        KUBECONFIG: { type: "StackOutput", stack: "cluster", output: "kubeconfig" },
        URL: { type: "StackOutput", stack: "cluster", output: "url" },
      },
    });
    const waiting = await stage.becomes("apps", "waiting", (stack) => reasonOf(stack) === "PrerequisiteNotSatisfied");
    expect(waiting.status?.waiting?.for).toBe("Stack cluster");
    await stage.stack("cluster");
    const cluster = await stage.isReady("cluster");
    expect(cluster.status?.outputs).toEqual({ kubeconfig: "[secret]", url: "http://web", list: [1, 2] });
    const secret = await stage.client.get(builtin.secrets, { namespace: stage.namespace, name: "cluster-outputs" });
    const data = Object.fromEntries(Object.entries(secret.data ?? {}).map(([key, value]) => [key, atob(value)]));
    expect(data).toEqual({ kubeconfig: "first", url: "http://web", list: "[1,2]" });
    await stage.isReady("apps");
    const workspace = await stage.client.get(workspaces, { namespace: stage.namespace, name: "apps" });
    const folder = "/var/run/secrets/stacks.pulumi.com/secrets/cluster-outputs";
    expect(workspace.spec?.env).toEqual([
      { name: "KUBECONFIG", value: `${folder}/kubeconfig` },
      { name: "URL", valueFrom: { secretKeyRef: { name: "cluster-outputs", key: "url" } } },
    ]);
    expect(workspace.spec?.podTemplate?.spec?.containers?.[0]?.volumeMounts?.[0]?.mountPath).toBe(folder);

    // A changed output triggers an update.
    const { length } = stage.runs;
    kubeconfig = "second";
    await stage.annotate("cluster", { [reconcileRequestAnnotation]: "1" });
    await waitFor(() => stage.runs.length === length + 2, { timeoutMs: 20_000 });
    await stage.isReady("apps");
    await stage.annotate("cluster", { [reconcileRequestAnnotation]: "2" });
    await stage.becomes("cluster", "run", ({ status }) => status?.lastUpdate?.reconcileRequest === "2");
    await stage.fence();
    expect(stage.runs.length).toBe(length + 3);
  },
  testTimeoutMs,
);

test(
  "the finalizer of an Update is removed if its Stack was deleted, also after the garbage collector has removed the owner reference",
  async () => {
    await using stage = await Stage.set();
    const { namespace, client } = stage;
    const ref = { namespace, name: "web-orphan" };
    await client.create(updates, {
      apiVersion: updates.apiVersion,
      kind: updates.kind,
      metadata: { ...ref, finalizers: [stackFinalizer], labels: labelsOfStack("web") },
      spec: { type: "up", workspaceName: "web", stackName: "dev" },
    });
    await client.delete(updates, ref);
    await waitFor(async () => (await client.find(updates, ref)) === undefined, { timeoutMs: 20_000, what: "its end" });
  },
  testTimeoutMs,
);

test(
  "an Update whose Workspace was deleted does not block the Stack",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    stage.simulator.script.update = () => ({ end: "never" });
    await stage.stack("web");
    await waitFor(() => stage.runs.length === 1);
    const ref = { namespace: stage.namespace, name: "web" };
    await stage.client.delete(workspaces, ref);
    const withdrawn = await stage.becomes("web", "failed", ({ status }) => status?.lastUpdate?.state === "failed");
    expect(reasonOf(withdrawn)).toBe("RetryingAfterFailure");
    stage.simulator.script.update = () => ({ end: "succeeded" });
    stage.jump(11_000);
    await stage.isReady("web");
    expect(stage.runs).toEqual(["up@1", "up@1"]);
  },
  testTimeoutMs,
);

test(
  "several changes while an update runs lead to one update",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    stage.simulator.script.update = () => ({ end: "never" });
    await stage.stack("web");
    await waitFor(() => stage.runs.length === 1);
    for (const text of ["a", "b", "c", "d"]) await stage.program("program", text);
    await stage.stack("web", { config: { "web:a": 1 } });
    await stage.annotate("web", { [reconcileRequestAnnotation]: "now" });
    stage.simulator.script.update = () => ({ end: "succeeded" });
    await stage.isReady("web", "5");
    expect(stage.runs).toEqual(["up@1", "up@5"]);
  },
  testTimeoutMs,
);

test(
  "a Stack may be created before its Program",
  async () => {
    await using stage = await Stage.set();
    await stage.stack("web");
    await stage.becomes("web", "waiting", (stack) => reasonOf(stack) === "SourceUnavailable");
    await stage.program("program");
    await stage.isReady("web", "1");
  },
  testTimeoutMs,
);

test(
  "a Workspace that never becomes ready can be fixed though an Update waits for it",
  async () => {
    await using stage = await Stage.set();
    await stage.program("program");
    stage.simulator.script.update = () => ({ end: "never" });
    await stage.stack("web", { destroyOnFinalize: true });
    await waitFor(() => stage.runs.length === 1);
    stage.simulator.script.workspace = ({ spec }) =>
      spec?.image === "good" ? { ready: true } : { waiting: "no image" };
    const hangs = async (): Promise<boolean> => {
      const { status } = await stage.client.get(workspaces, { namespace: stage.namespace, name: "web" });
      return status?.conditions?.[0]?.message === "no image";
    };
    await waitFor(hangs);
    stage.simulator.script.update = ({ metadata }) =>
      metadata.name === stage.simulator.runs[0]?.name ? { end: "never" } : { end: "succeeded" };
    await stage.stack("web", { destroyOnFinalize: true, workspaceTemplate: { spec: { image: "good" } } });
    await stage.isReady("web");
    expect(stage.runs).toEqual(["up@1", "up@1"]);
  },
  testTimeoutMs,
);
