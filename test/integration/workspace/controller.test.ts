import { expect, test } from "bun:test";

import { builtin, isNotFound, type ApiObject } from "@pko/kube";
import { plainOidc, programs, workspaces, type Preparation } from "@pko/operator";
import type { PrepareFailure } from "@pko/rpc";
import { fullQuota, waitFor, type FaultProxy } from "@pko/testkit";
import type { StatefulSet } from "kubernetes-types/apps/v1";

import { controllerOf, running } from "../harness/pods.ts";
import { complete, testTimeoutMs, prepared, WorkspaceScene } from "./scene.ts";

const spec = { local: { dir: "/app" }, stacks: [{ name: "dev", create: true }] };

test(
  "a workspace gets its objects, its pod is prepared, and it becomes ready",
  async () => {
    await using scene = await WorkspaceScene.open();
    await scene.create("web", spec);
    await scene.becomes("web", "WaitingForReplicas");
    const set = await scene.statefulSet("web");
    const service = await scene.client.get(builtin.services, scene.ref("web-workspace"));
    const secret = await scene.client.get(builtin.secrets, scene.ref("web-workspace-tls"));
    const { uid } = (await scene.workspace("web")).metadata;
    for (const owned of [set, service, secret]) {
      expect(owned.metadata.ownerReferences).toMatchObject([{ kind: "Workspace", name: "web", uid, controller: true }]);
    }
    expect(service.spec).toMatchObject({ clusterIP: "None", ports: [{ port: 50051 }] });
    expect(Object.keys(secret.data ?? {}).toSorted()).toEqual(["ca.crt", "tls.crt", "tls.key"]);
    expect(set.spec).toMatchObject({ replicas: 1, serviceName: "web-workspace", podManagementPolicy: "Parallel" });

    await scene.simulatePod("web", running(1));
    const workspace = await scene.becomes("web", "Succeeded");
    expect(workspace.status).toMatchObject({ address: "10.1.0.1:50051", pulumiVersion: "3.259.0" });
    expect(scene.agents.requests).toMatchObject([
      { request: { source: { kind: "local", dir: "/app" }, stacks: [{ name: "dev", create: true, config: [] }] } },
    ]);
    await scene.events("Initialized");
  },
  testTimeoutMs,
);

test(
  "a ready workspace is not written again",
  async () => {
    await using scene = await WorkspaceScene.open();
    await scene.ready("web", spec);
    const before = [await scene.workspace("web"), await scene.statefulSet("web")];
    for (let pass = 0; pass < 5; pass++) await scene.reconciled("web");
    expect([await scene.workspace("web"), await scene.statefulSet("web")]).toEqual(before as never);
  },
  testTimeoutMs,
);

test(
  "new configuration is prepared in the same pod; a new image replaces it",
  async () => {
    await using scene = await WorkspaceScene.open();
    const { generation } = (await scene.ready("web", spec)).metadata;
    const set = await scene.statefulSet("web");
    await scene.change("web", { stacks: [{ name: "dev", create: true, config: [{ key: "a", value: "1" }] }] });
    await waitFor(() => scene.agents.requests.length === 2);
    const workspace = await scene.becomes("web", "Succeeded");
    expect(workspace.status?.observedGeneration).toBe((generation ?? 0) + 1);
    expect((await scene.statefulSet("web")).metadata.generation).toBe(set.metadata.generation);

    await scene.change("web", { image: "mine:2" });
    await scene.becomes("web", "RollingUpdate");
    expect((await scene.container("web"))?.image).toBe("mine:2");
    await scene.simulatePod("web");
    await scene.becomes("web", "Succeeded");
  },
  testTimeoutMs,
);

test(
  "a Secret that the pod reads is waited for, and replaces the pod when it changes; one with Git credentials does not",
  async () => {
    await using scene = await WorkspaceScene.open();
    const reading = { env: [{ name: "T", valueFrom: { secretKeyRef: { name: "token", key: "t" } } }] };
    const auth = { token: { name: "git", key: "token" } };
    const git = { url: "https://example.com/r", ref: "a".repeat(40), auth };
    await scene.create("web", { ...reading, git, stacks: spec.stacks });
    await scene.becomes("web", "InitializationFailed", "there is no Secret git");
    const secret = async (name: string, data: Record<string, string>): Promise<void> => {
      const body = { apiVersion: "v1", kind: "Secret", metadata: scene.ref(name), stringData: data };
      await scene.client.apply(builtin.secrets, body, { fieldManager: "test" });
      scene.reconcile("web");
    };
    await secret("git", { token: "g1" });
    await scene.becomes("web", "WaitingForReplicas", "there is no Secret token, which the variable T");
    await secret("token", { t: "1", other: "x" });
    await scene.becomes("web", "WaitingForReplicas", "being created");
    await scene.simulatePod("web");
    await scene.becomes("web", "Succeeded");
    const { generation } = (await scene.statefulSet("web")).metadata;

    await secret("git", { token: "g2" });
    await waitFor(() => scene.agents.requests.length === 2);
    await secret("token", { t: "1", other: "y" });
    await scene.reconciled("web");
    expect((await scene.statefulSet("web")).metadata.generation).toBe(generation);

    await secret("token", { t: "2", other: "y" });
    await scene.becomes("web", "RollingUpdate");
    expect((await scene.statefulSet("web")).metadata.generation).toBe((generation ?? 0) + 1);
    const text = JSON.stringify([await scene.statefulSet("web"), await scene.workspace("web")]);
    expect(text).not.toContain("g2");
  },
  testTimeoutMs,
);

test(
  "a workspace without an access token gets one for its service account, and needs an organization for it",
  async () => {
    const oidc = { ...plainOidc, automatic: true };
    await using scene = await WorkspaceScene.open({ oidc });
    const volumes = async (): Promise<string[]> => {
      const { spec: built } = await scene.statefulSet("web");
      return (built?.template.spec?.volumes ?? []).map(({ name }) => name);
    };
    await scene.create("web", { ...spec, oidc: {}, stacks: [{ name: "dev" }] });
    await scene.becomes("web", "InitializationFailed", "spec.oidc.organization: is missing");
    await scene.change("web", { oidc: null, stacks: [{ name: "acme/web/dev" }] });
    await scene.becomes("web", "WaitingForReplicas");
    expect(await volumes()).toContain("pulumi-oidc");
    await scene.change("web", { env: [{ name: "PULUMI_ACCESS_TOKEN", value: "pul-own" }] });
    await waitFor(async () => !(await volumes()).includes("pulumi-oidc"));
  },
  testTimeoutMs,
);

test(
  "an idle workspace is scaled to zero, and an Update wakes it",
  async () => {
    await using scene = await WorkspaceScene.open({ idleTimeoutMs: 1500 });
    await scene.ready("web", spec);
    const idle = await scene.becomes("web", "Succeeded", "idle");
    expect(idle.status?.address).toBeUndefined();
    await waitFor(async () => (await scene.statefulSet("web")).spec?.replicas === 0);
    await scene.removePod("web");
    await waitFor(() => scene.agents.forgotten > 0, { what: "its agent to be forgotten" });

    await scene.createUpdate("first", "web");
    await scene.becomes("web", "WaitingForReplicas");
    expect((await scene.statefulSet("web")).spec?.replicas).toBe(1);
    await scene.simulatePod("web", running(7));
    const awake = await scene.becomes("web", "Succeeded", "prepared");
    expect(awake.status?.address).toBe("10.1.0.7:50051");
    await becomesIdleLater(scene);
    expect((await scene.statefulSet("web")).spec?.replicas).toBe(1);
    await scene.setUpdate("first", { ...complete, endTime: new Date().toISOString() });
    await scene.becomes("web", "Succeeded", "idle");
    await waitFor(async () => (await scene.statefulSet("web")).spec?.replicas === 0);
  },
  testTimeoutMs,
);

test(
  "a new commit wakes an idle workspace, whose agent compares it with an earlier one",
  async () => {
    await using scene = await WorkspaceScene.open({ idleTimeoutMs: 1500 });
    const [earlier, commit] = ["a".repeat(40), "b".repeat(40)];
    const git = (ref: string) => ({ url: "https://example.com/repo", ref });
    await scene.ready("web", { stacks: spec.stacks, git: git(earlier) });
    await scene.becomes("web", "Succeeded", "idle");
    await waitFor(async () => (await scene.statefulSet("web")).spec?.replicas === 0);
    await scene.removePod("web");

    const compareWith = { commit: earlier, pathFilters: ["infra/**"] };
    if (prepared.ok) {
      const result = { ok: true, prepared: { ...prepared.prepared, unchangedSince: earlier } } as const;
      scene.agents.answer = { state: "done", result };
    }
    await scene.change("web", { git: { ...git(commit), compareWith } });
    await scene.becomes("web", "WaitingForReplicas");
    await scene.simulatePod("web", running(7));
    const compared = await scene.becomes("web", "Succeeded", "prepared");
    expect(scene.agents.requests.at(-1)?.request.source).toMatchObject({ commit, compareWith });
    expect(compared.status?.unchangedSince).toBe(earlier);
    expect((await scene.becomes("web", "Succeeded", "idle")).status?.unchangedSince).toBe(earlier);
  },
  testTimeoutMs,
);

test(
  "the pod is not replaced while an Update runs in it, but afterwards",
  async () => {
    await using scene = await WorkspaceScene.open();
    await scene.ready("web", spec);
    const pod = await scene.client.get(builtin.pods, scene.ref("web-workspace-0"));
    await scene.createUpdate("run", "web");
    await scene.setUpdate("run", { podUid: pod.metadata.uid ?? "", startTime: "2030-01-01T00:00:00Z" });
    await scene.change("web", { image: "mine:2" });
    const waiting = await scene.becomes("web", "RollingUpdate", "waits for the update run to finish");
    expect(waiting.status?.address).toBeDefined();
    expect((await scene.container("web"))?.image).not.toBe("mine:2");
    await scene.setUpdate("run", complete);
    await waitFor(async () => (await scene.container("web"))?.image === "mine:2");
  },
  testTimeoutMs,
);

test(
  "a pod that lost its owner is kept while an Update runs in it",
  async () => {
    await using scene = await WorkspaceScene.open();
    await scene.ready("web", spec);
    const ref = scene.ref("web-workspace-0");
    const pod = await scene.client.get(builtin.pods, ref);
    await scene.createUpdate("run", "web");
    await scene.setUpdate("run", { podUid: pod.metadata.uid ?? "", startTime: "2030-01-01T00:00:00Z" });
    const patch = { type: "merge", body: { metadata: { ownerReferences: null } } } as const;
    await scene.client.patch(builtin.pods, ref, { patch });
    await scene.change("web", { image: "mine:2" });
    const waiting = await scene.becomes("web", "RollingUpdate", "waits for the update run to finish");
    expect(waiting.status?.address).toBeDefined();
  },
  testTimeoutMs,
);

const unprepared = { state: "refused", code: "unprepared", message: "the workspace is not prepared" } as const;

test(
  "a workspace whose agent cannot start an Update is prepared until that succeeds, also by the next operator",
  async () => {
    await using scene = await WorkspaceScene.open();
    await scene.ready("web", spec);
    const pod = await scene.client.get(builtin.pods, scene.ref("web-workspace-0"));
    await scene.createUpdate("run", "web");
    scene.runInPod = unprepared;
    scene.agents.answer = {
      state: "done",
      result: { ok: false, failure: { phase: "stack", reason: "backendUnavailable", message: "no route", lines: [] } },
    };
    await scene.setUpdate("run", { podUid: pod.metadata.uid ?? "", startTime: "2030-01-01T00:00:00Z" });
    await scene.becomes("web", "InitializationFailed", "no route");
    await waitFor(() => scene.agents.retries > 0, { timeoutMs: 30_000, what: "another attempt" });

    await scene.upgrade({});
    scene.runInPod = unprepared;
    scene.reconcile("web");
    await waitFor(() => scene.agents.requests.length > 0, { what: "the next operator to prepare the workspace" });
    await scene.becomes("web", "Succeeded");
    expect((await scene.client.get(builtin.pods, scene.ref("web-workspace-0"))).metadata.uid).toBe(
      pod.metadata.uid ?? "",
    );
  },
  testTimeoutMs,
);

test(
  "a certificate that a quota rejects is reported, and written once the quota allows it",
  async () => {
    await using scene = await WorkspaceScene.open();
    scene.rights.expectForbidden(/exceeded quota: none/);
    // From now on the Secret of the operator's CA exists.
    await scene.ready("first", spec);
    const probe = { apiVersion: "v1", kind: "Secret", metadata: scene.ref("probe") };
    const quota = await fullQuota({
      client: scene.client,
      namespace: scene.namespace,
      counted: "secrets",
      probe: () => scene.client.create(builtin.secrets, probe, { dryRun: true }),
    });
    await scene.create("web", spec);
    await scene.becomes(
      "web",
      "InitializationFailed",
      "the Secret web-workspace-tls with the agent's certificate could not be written",
    );
    await quota[Symbol.asyncDispose]();
    scene.reconcile("web");
    await waitFor(async () => await scene.client.find(builtin.secrets, scene.ref("web-workspace-tls")), {
      what: "the certificate",
    });
  },
  testTimeoutMs,
);

test(
  "an upgraded operator replaces the pod for its newer agent, but not while an Update runs in it",
  async () => {
    await using scene = await WorkspaceScene.open({ agentImage: "agent:1" });
    await scene.ready("web", spec);
    const pod = await scene.client.get(builtin.pods, scene.ref("web-workspace-0"));
    await scene.createUpdate("run", "web");
    await scene.setUpdate("run", { podUid: pod.metadata.uid ?? "", startTime: "2030-01-01T00:00:00Z" });
    const { metadata, spec: asBefore } = await scene.statefulSet("web");
    await scene.upgrade({ agentImage: "agent:2" });
    await scene.reconciled("web");
    expect(await scene.statefulSet("web")).toMatchObject({
      metadata: { annotations: metadata.annotations },
      spec: asBefore,
    });
    const same = await scene.client.get(builtin.pods, scene.ref("web-workspace-0"));
    expect(same.metadata).toMatchObject({ uid: pod.metadata.uid });
    expect(same.metadata.deletionTimestamp).toBeUndefined();
    expect((await scene.workspace("web")).status?.address).toBeDefined();
    await scene.setUpdate("run", complete);
    await waitFor(async () => (await scene.container("web", "bootstrap"))?.image === "agent:2");
  },
  testTimeoutMs,
);

test(
  "an object that the API server rejects is reported with its reason, and fixed by a valid spec",
  async () => {
    await using scene = await WorkspaceScene.open();
    const tooMuch = { spec: { containers: [{ name: "pulumi", resources: { limits: { cpu: "50m" } } }] } };
    await scene.create("web", { ...spec, podTemplate: tooMuch });
    const refused = await scene.becomes("web", "InitializationFailed", "must be less than or equal to cpu limit");
    expect(refused.status?.conditions?.map(({ type, status }) => [type, status])).toEqual([
      ["Ready", "False"],
      ["Stalled", "True"],
    ]);
    await scene.change("web", { podTemplate: { spec: { containers: [{ name: "pulumi", imagee: "x" }] } } });
    await scene.becomes("web", "InitializationFailed", 'unknown field "spec.containers[0].imagee"');
    await scene.change("web", { podTemplate: { spec: { hostNetwork: true, containers: null } } });
    await scene.becomes("web", "InitializationFailed", "spec.podTemplate.spec.hostNetwork is true");
    const bad: readonly [object, string][] = [
      [{ podTemplate: null, serviceTemplate: { spec: { portss: [] } } }, 'unknown field "spec.portss"'],
      [{ serviceTemplate: { spec: { type: "Nothing", portss: null } } }, 'Unsupported value: "Nothing"'],
      [
        { serviceTemplate: null, podTemplate: { spec: { restartPolicy: "Never" } } },
        "restartPolicy: Unsupported value",
      ],
      [{ podTemplate: { spec: { tolerations: "all", restartPolicy: null } } }, "tolerations"],
      [
        { podTemplate: { spec: { containers: [{ name: "pulumi", env: [{ name: "A", value: 1 }] }] } } },
        "is not a string",
      ],
    ];
    for (const [change, text] of bad) {
      await scene.change("web", change);
      await scene.becomes("web", "InitializationFailed", text);
    }
    await scene.change("web", { podTemplate: null });
    await scene.becomes("web", "WaitingForReplicas");
  },
  testTimeoutMs,
);

test(
  "a pod that does not start is explained, and replaced by a better template",
  async () => {
    await using scene = await WorkspaceScene.open();
    await scene.create("web", { ...spec, image: "nowhere:1" });
    await scene.becomes("web", "WaitingForReplicas");
    const waiting = { reason: "ImagePullBackOff", message: 'Back-off pulling image "nowhere:1"' };
    const status = {
      name: "pulumi",
      image: "nowhere:1",
      imageID: "",
      ready: false,
      restartCount: 0,
      state: { waiting },
    };
    const stuck = await scene.simulatePod("web", { phase: "Pending", containerStatuses: [status] });
    await scene.becomes("web", "WaitingForReplicas", "the image nowhere:1 cannot be pulled: Back-off");

    await scene.change("web", { image: "somewhere:1" });
    await scene.becomes("web", "RollingUpdate");
    await scene.simulateRevision("web", "better");
    await waitFor(async () => {
      const pod = await scene.client.find(builtin.pods, scene.ref("web-workspace-0"));
      return pod?.metadata.uid !== stuck.metadata.uid || pod?.metadata.deletionTimestamp !== undefined;
    });
  },
  testTimeoutMs,
);

test(
  "a Program is prepared as a project; a new generation is prepared in the same pod",
  async () => {
    await using scene = await WorkspaceScene.open();
    await scene.create("web", { program: { name: "web", generation: 1 }, stacks: spec.stacks });
    await scene.becomes("web", "InitializationFailed", "there is no Program web");
    const { apiVersion, kind } = programs;
    const program = { resources: { a: { type: "pulumi:index:Stash", properties: { input: 1 } } } };
    await scene.client.create(programs, { apiVersion, kind, metadata: scene.ref("web"), program });
    await scene.becomes("web", "WaitingForReplicas");
    await scene.simulatePod("web");
    await scene.becomes("web", "Succeeded");
    const { source } = scene.agents.requests[0]?.request ?? {};
    expect(source).toMatchObject({ kind: "files", revision: "1" });
    expect(JSON.stringify(source)).toContain("name: web\\nruntime: yaml\\nresources:");
  },
  testTimeoutMs,
);

test(
  "a failed preparation is reported, retried, and forgotten when it succeeds",
  async () => {
    await using scene = await WorkspaceScene.open();
    const lines = ["npm ERR! 404"];
    const failure = { phase: "install", reason: "installFailed", message: "npm failed", lines } as const;
    scene.agents.answer = { state: "done", result: { ok: false, failure } };
    await scene.create("web", spec);
    await scene.becomes("web", "WaitingForReplicas");
    await scene.simulatePod("web");
    await scene.becomes("web", "InstallationFailed", "npm failed\nnpm ERR! 404");
    await scene.events("InstallationFailure");
    scene.agents.answer = { state: "running", phase: "install" };
    await scene.reconciled("web");
    await scene.becomes("web", "InstallationFailed");
    scene.agents.answer = { state: "done", result: prepared };
    scene.reconcile("web");
    await scene.becomes("web", "Succeeded");
  },
  testTimeoutMs,
);

const unreachable: PrepareFailure = {
  phase: "source",
  reason: "sourceUnavailable",
  message: "no route to it",
  lines: [],
};

test(
  "a preparation that keeps failing is retried at growing intervals",
  async () => {
    await using scene = await WorkspaceScene.open();
    const failed: Preparation = { state: "done", result: { ok: false, failure: unreachable } };
    scene.agents.answer = failed;
    scene.agents.whileRetrying = { state: "running", phase: "source" };
    await scene.create("web", spec);
    await scene.becomes("web", "WaitingForReplicas");
    await scene.simulatePod("web");
    await scene.becomes("web", "InitializationFailed", "no route");
    await waitFor(() => scene.agents.retries === 1, { timeoutMs: 30_000, what: "the first retry" });
    scene.agents.answer = failed;
    for (let pass = 0; pass < 5; pass++) await scene.reconciled("web");
    expect(scene.agents.retries).toBe(1);

    // A requested retry does not wait.
    const body = { metadata: { annotations: { "pulumi.com/reconciliation-request": "now" } } };
    await scene.client.patch(workspaces, scene.ref("web"), { patch: { type: "merge", body } });
    await waitFor(() => scene.agents.retries === 2, { timeoutMs: 45_000, what: "the requested retry" });
    scene.agents.answer = failed;
    await scene.reconciled("web");
    expect(scene.agents.retries).toBe(2);
  },
  testTimeoutMs,
);

test(
  "a failed workspace is scaled to zero like an idle one, and prepared again for a new spec",
  async () => {
    await using scene = await WorkspaceScene.open({ idleTimeoutMs: 1500 });
    scene.agents.answer = { state: "done", result: { ok: false, failure: unreachable } };
    await scene.create("web", spec);
    await scene.becomes("web", "WaitingForReplicas");
    await scene.simulatePod("web");
    await scene.becomes("web", "InitializationFailed", "no route");
    const isScaledToZero = async (): Promise<boolean> => (await scene.statefulSet("web")).spec?.replicas === 0;
    const reconciling = setInterval(() => scene.reconcile("web"), 200);
    try {
      await waitFor(isScaledToZero, { timeoutMs: 45_000, what: "the workspace to be scaled to zero" });
    } finally {
      clearInterval(reconciling);
    }
    await scene.removePod("web");
    await scene.becomes("web", "InitializationFailed", "no route");
    scene.agents.answer = { state: "done", result: prepared };
    await scene.change("web", { local: { dir: "/other" } });
    await scene.becomes("web", "WaitingForReplicas");
    expect(await isScaledToZero()).toBe(false);
    await scene.simulatePod("web");
    await scene.becomes("web", "Succeeded");
  },
  testTimeoutMs,
);

test(
  "a StatefulSet that was changed by hand is restored",
  async () => {
    await using scene = await WorkspaceScene.open();
    await scene.ready("web", spec);
    const before = await scene.statefulSet("web");
    const body = [{ op: "replace", path: "/spec/template/spec/containers/0/image", value: "mine:1" }];
    await scene.client.patch(builtin.statefulSets, scene.ref("web-workspace"), { patch: { type: "json", body } });
    await waitFor(async () => {
      const { metadata, spec } = await scene.statefulSet("web");
      return metadata.generation === 3 && Bun.deepEquals(spec, before.spec);
    });
  },
  testTimeoutMs,
);

test(
  "objects of a deleted Workspace are not created again although the store still shows it",
  async () => {
    const proxied = (proxy: FaultProxy): void =>
      void proxy.onEvent(({ type, object }) => (type === "DELETED" && object.kind === "Workspace" ? "drop" : "pass"));
    await using scene = await WorkspaceScene.open({}, { proxied });
    await scene.ready("web", spec);
    await scene.client.delete(workspaces, scene.ref("web"));
    // As the garbage collector does.
    await scene.client.delete(builtin.secrets, scene.ref("web-workspace-tls"));
    await scene.client.delete(builtin.statefulSets, scene.ref("web-workspace"));
    await scene.reconciled("web");
    expect(await scene.client.find(builtin.secrets, scene.ref("web-workspace-tls"))).toBeUndefined();
    expect(await scene.client.find(builtin.statefulSets, scene.ref("web-workspace"))).toBeUndefined();
  },
  testTimeoutMs,
);

test(
  "an agent that answers before the kubelet reports that it runs is used",
  async () => {
    await using scene = await WorkspaceScene.open();
    await scene.create("web", spec);
    await scene.becomes("web", "WaitingForReplicas");
    const up = running(200);
    const [container] = up.containerStatuses ?? [];
    const waiting = (reason: string) => ({ state: { waiting: { reason } }, ready: false, started: false });
    const status = (reason: string): typeof up => ({
      ...up,
      phase: "Pending",
      containerStatuses: container ? [{ ...container, ...waiting(reason) }] : [],
    });
    // No agent can run while its image cannot be pulled.
    await scene.simulatePod("web", status("ImagePullBackOff"));
    await scene.becomes("web", "WaitingForReplicas", "cannot be pulled");
    expect(scene.agents.requests).toHaveLength(0);
    await scene.setPod("web", status("PodInitializing"));
    const ready = await scene.becomes("web", "Succeeded");
    expect(ready.status?.address).toBe("10.1.0.200:50051");
    expect(scene.agents.requests.map(({ pod }) => pod.isStarting)).toEqual([true]);
    await scene.setPod("web", up);
    await waitFor(() => scene.agents.requests.length === 2);
    expect((await scene.becomes("web", "Succeeded")).status).toEqual(ready.status ?? {});
  },
  testTimeoutMs,
);

test(
  "when pods are unschedulable, as many workspaces are scaled to zero: those that have been idle for longest",
  async () => {
    await using scene = await WorkspaceScene.open({ idleTimeoutMs: 600_000 });
    for (const name of ["fresh", "idle", "idle-too"]) await scene.ready(name, spec);
    for (const name of ["idle", "idle-too"]) {
      const { status } = await scene.workspace(name);
      const conditions = [{ ...status?.conditions?.[0], lastTransitionTime: minuteAgo() }];
      await scene.client.patch(workspaces, scene.ref(name), {
        patch: { type: "merge", body: { status: { conditions } } },
        subresource: "status",
      });
    }
    const message = "0/1 nodes are available: 1 Insufficient cpu.";
    for (const name of ["needy", "needy-too"]) {
      await scene.create(name, spec);
      await scene.becomes(name, "WaitingForReplicas");
      await scene.simulatePod(name, {
        phase: "Pending",
        conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }],
      });
      await scene.becomes(
        name,
        "WaitingForReplicas",
        `${message}; idle workspaces are being scaled to zero to free capacity`,
      );
    }
    for (const name of ["idle", "idle-too"]) {
      await scene.becomes(name, "Succeeded", "idle");
      await waitFor(async () => (await scene.statefulSet(name)).spec?.replicas === 0);
    }
    expect((await scene.statefulSet("fresh")).spec?.replicas).toBe(1);
  },
  testTimeoutMs,
);

/** Returns when a workspace that became ready just now was scaled to zero: one that was ready before was due earlier. */
async function becomesIdleLater(scene: WorkspaceScene): Promise<void> {
  await scene.ready("later", spec);
  await scene.becomes("later", "Succeeded", "idle");
  await waitFor(async () => (await scene.statefulSet("later")).spec?.replicas === 0);
}

const minuteAgo = (): string => new Date(Date.now() - 60_000).toISOString().replace(/\.\d+/, "");

test(
  "a workspace whose state would be lost with its pod is not scaled to zero, and reports it",
  async () => {
    await using scene = await WorkspaceScene.open({ idleTimeoutMs: 1000 });
    const env = [{ name: "PULUMI_BACKEND_URL", value: "file:///share/state" }];
    await scene.ready("web", { ...spec, env });
    await scene.becomes("web", "Succeeded", "which no volume keeps");
    await scene.events("StateNotKept");
    await becomesIdleLater(scene);
    expect((await scene.statefulSet("web")).spec?.replicas).toBe(1);
  },
  testTimeoutMs,
);

test(
  "an init container may append to $PULUMI_ENV",
  async () => {
    await using scene = await WorkspaceScene.open();
    const initContainers = [{ name: "setup-env", image: "busybox", command: ["sh", "-c", "echo A=1 >> $PULUMI_ENV"] }];
    await scene.create("web", { ...spec, podTemplate: { spec: { initContainers } } });
    await scene.becomes("web", "WaitingForReplicas");
    const setup = (await scene.statefulSet("web")).spec?.template.spec?.initContainers?.find(
      ({ name }) => name === "setup-env",
    );
    expect(setup?.env).toEqual([{ name: "PULUMI_ENV", value: "/share/.env" }]);
    expect(setup?.volumeMounts).toEqual([{ name: "share", mountPath: "/share" }]);
  },
  testTimeoutMs,
);

test(
  "a certificate that was deleted or damaged is issued again, and the pod stays",
  async () => {
    await using scene = await WorkspaceScene.open({ certificateMs: 0 });
    await scene.ready("web", spec);
    const ref = scene.ref("web-workspace-tls");
    const { generation } = (await scene.statefulSet("web")).metadata;
    const { data } = await scene.client.get(builtin.secrets, ref);
    await scene.reconciled("web");
    expect((await scene.client.get(builtin.secrets, ref)).data).toEqual(data as never);

    const damaged = { data: { "tls.crt": Buffer.from("damaged").toString("base64") } };
    await scene.client.patch(builtin.secrets, ref, { patch: { type: "merge", body: damaged } });
    scene.reconcile("web");
    await waitFor(async () => {
      const { data: next } = await scene.client.get(builtin.secrets, ref);
      return Buffer.from(next?.["tls.crt"] ?? "", "base64")
        .toString()
        .includes("BEGIN CERTIFICATE");
    });
    await scene.client.delete(builtin.secrets, ref);
    scene.reconcile("web");
    await waitFor(async () => (await scene.client.find(builtin.secrets, ref)) !== undefined);
    expect((await scene.statefulSet("web")).metadata.generation).toBe(generation);
    await scene.becomes("web", "Succeeded");
  },
  testTimeoutMs,
);

test(
  "a StatefulSet is replaced if the API server does not allow to change it",
  async () => {
    await using scene = await WorkspaceScene.open();
    // Nothing is created while its template is invalid.
    await scene.create("web", { ...spec, serviceTemplate: { spec: { clusterIP: 1 } } } as never);
    const { metadata } = await scene.becomes("web", "InitializationFailed");
    await scene.client.create(builtin.statefulSets, {
      ...oldStatefulSet(scene),
      metadata: { ...scene.ref("web-workspace"), ownerReferences: [controllerOf(workspaces, { metadata })] },
    });
    await scene.change("web", { serviceTemplate: null });
    // No garbage collector runs here: the test does its work.
    await waitFor(async () => {
      const { metadata } = await scene.statefulSet("web");
      if (!metadata.deletionTimestamp) return false;
      const patch = { type: "merge", body: { metadata: { finalizers: null } } } as const;
      await scene.client.patch(builtin.statefulSets, scene.ref("web-workspace"), { patch });
      return true;
    });
    await waitFor(async () => (await scene.statefulSet("web")).spec?.serviceName === "web-workspace");
  },
  testTimeoutMs,
);

/** Differs in fields that cannot be changed. */
function oldStatefulSet(scene: WorkspaceScene): ApiObject<StatefulSet> {
  const labels = { app: "old" };
  return {
    apiVersion: "apps/v1",
    kind: "StatefulSet",
    metadata: scene.ref("web-workspace"),
    spec: {
      serviceName: "old",
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: "a", image: "b" }] } },
    },
  };
}

test(
  "objects of an earlier Workspace of the same name are left to the garbage collector, and then created again",
  async () => {
    await using scene = await WorkspaceScene.open();
    const controller = controllerOf(workspaces, { metadata: { name: "web", uid: "an-earlier-uid" } });
    const set = oldStatefulSet(scene);
    const former = await scene.client.create(builtin.statefulSets, {
      ...set,
      metadata: { ...set.metadata, ownerReferences: [controller] },
    });
    await scene.create("web", spec);
    await scene.becomes("web", "WaitingForReplicas", "belonged to an earlier Workspace web");
    await scene.reconciled("web");
    expect(await scene.statefulSet("web")).toEqual(former);
    await scene.client.delete(builtin.statefulSets, scene.ref("web-workspace"));
    scene.reconcile("web");
    await waitFor(async () => (await scene.statefulSet("web")).spec?.serviceName === "web-workspace");
  },
  testTimeoutMs,
);

test(
  "a pod of another owner is reported, not used and not deleted; a new one is created once it is removed",
  async () => {
    await using scene = await WorkspaceScene.open();
    await scene.ready("web", spec);
    const ref = scene.ref("web-workspace-0");
    const theirs = [{ ...controllerOf(builtin.statefulSets, { metadata: { name: "other", uid: "another-uid" } }) }];
    await scene.client.patch(builtin.pods, ref, {
      patch: { type: "merge", body: { metadata: { ownerReferences: theirs } } },
    });
    // A changed template, and a pod that does not start: a pod of ours would be deleted.
    await scene.setPod("web", { phase: "Pending" });
    await scene.change("web", { image: "another:1" });
    await scene.becomes("web", "WaitingForReplicas");
    await scene.simulateRevision("web", "better");
    await scene.becomes(
      "web",
      "OwnershipConflict",
      `Pod ${scene.namespace}/web-workspace-0 (owned by StatefulSet other)`,
    );
    expect((await scene.client.get(builtin.pods, ref)).metadata.deletionTimestamp).toBeUndefined();
    const retried = async () =>
      (await scene.statefulSet("web")).metadata.annotations?.["auto.pulumi.com/pod-retried-at"];
    expect(await retried()).toBeUndefined();
    await scene.removePod("web");
    await scene.becomes("web", "WaitingForReplicas", "the pod is being created");
    expect(await retried()).toBeDefined();
    await scene.simulatePod("web");
    await scene.becomes("web", "Succeeded");
  },
  testTimeoutMs,
);

test(
  "a pod of an earlier StatefulSet is waited for, and not used",
  async () => {
    await using scene = await WorkspaceScene.open();
    await scene.ready("web", spec);
    const ref = scene.ref("web-workspace-0");
    const former = [controllerOf(builtin.statefulSets, { metadata: { name: "web-workspace", uid: "another-uid" } })];
    await scene.client.patch(builtin.pods, ref, {
      patch: { type: "merge", body: { metadata: { ownerReferences: former } } },
    });
    await scene.becomes(
      "web",
      "RollingUpdate",
      `Pod ${scene.namespace}/web-workspace-0 belonged to an earlier StatefulSet web-workspace`,
    );
    expect((await scene.client.get(builtin.pods, ref)).metadata.deletionTimestamp).toBeUndefined();
    await scene.simulatePod("web");
    await scene.becomes("web", "Succeeded");
  },
  testTimeoutMs,
);

test(
  "a namespace that enforces the restricted standard admits the objects and the pod",
  async () => {
    await using scene = await WorkspaceScene.open(
      {},
      { labels: { "pod-security.kubernetes.io/enforce": "restricted" } },
    );
    const podTemplate = { spec: { initContainers: [{ name: "mine", image: "busybox" }] } };
    await scene.ready("web", { ...spec, podTemplate });
  },
  testTimeoutMs,
);

test(
  "a deleted workspace is forgotten",
  async () => {
    await using scene = await WorkspaceScene.open();
    await scene.ready("web", spec);
    await scene.client.delete(workspaces, scene.ref("web"));
    await waitFor(async () => (await scene.client.find(workspaces, scene.ref("web"))) === undefined);
    await waitFor(() => scene.agents.forgotten > 0, { what: "its agent to be forgotten" });
    const read = scene.workspace("web");
    expect(await read.catch((error: unknown) => isNotFound(error))).toBe(true);
  },
  testTimeoutMs,
);
