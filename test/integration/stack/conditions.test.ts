/** What can block a Stack, how its status reports that, and that it continues when the cause is fixed. */
import { describe, expect, test } from "bun:test";
import { createCa } from "@pko/cluster";
import { reconcileRequestAnnotation, stackKind, type Stack } from "@pko/api";
import { builtin } from "@pko/kube";
import { stacks, updates, workspaces } from "@pko/operator";
import { fullQuota, waitFor } from "@pko/testkit";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { condition, testTimeoutMs, reasonOf, StackScene } from "./scene.ts";
import { gitServer } from "./git-server.ts";

const message = (stack: Stack): string => condition(stack, "Ready")?.message ?? "";
const stalls = (scene: StackScene, name: string, reason: string): Promise<Stack> =>
  scene.becomes(name, reason, (stack) => reasonOf(stack) === reason);

describe("inputs", () => {
  test(
    "a Secret that is created late, and a wrong key",
    async () => {
      await using scene = await StackScene.open();
      await scene.program("program");
      await scene.stack("web", {
        envRefs: { TOKEN: { type: "Secret", secret: { name: "token", key: "value" } } },
        configRefs: { "web:size": { name: "sizes", key: "size", json: true } },
      });
      const waiting = await stalls(scene, "web", "SpecInvalid");
      expect(message(waiting)).toContain(
        "there is no Secret token, which the variable TOKEN needs; there is no ConfigMap sizes",
      );
      const metadata = { namespace: scene.namespace };
      await scene.client.create(builtin.secrets, {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { ...metadata, name: "token" },
        stringData: { other: "x" },
      });
      await scene.client.create(builtin.configMaps, {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { ...metadata, name: "sizes" },
        data: { size: "{" },
      });
      scene.jump(16_000);
      const notJson = "the key size of the ConfigMap sizes is not valid JSON";
      const wrong = await scene.becomes("web", "stalled by the value", (stack) => message(stack).includes(notJson));
      expect(message(wrong)).toContain("the Secret token has no key value");
      await scene.client.apply(
        builtin.secrets,
        { apiVersion: "v1", kind: "Secret", metadata: { ...metadata, name: "token" }, stringData: { value: "canary" } },
        { fieldManager: "test" },
      );
      await scene.client.apply(
        builtin.configMaps,
        { apiVersion: "v1", kind: "ConfigMap", metadata: { ...metadata, name: "sizes" }, data: { size: "3" } },
        { fieldManager: "test" },
      );
      scene.jump(16_000);
      await scene.isReady("web");
      const workspace = await scene.client.get(workspaces, { namespace: scene.namespace, name: "web" });
      expect(workspace.spec?.stacks?.[0]?.config).toEqual([
        {
          key: "web:size",
          valueFrom: { path: "/var/run/configmaps/stacks.pulumi.com/configmaps/sizes/size", json: true },
        },
      ]);
      expect(JSON.stringify([workspace, await scene.get("web")])).not.toContain("canary");
    },
    testTimeoutMs,
  );

  test(
    "a dependency cycle is reported; the Stacks continue when it is broken",
    async () => {
      await using scene = await StackScene.open();
      await scene.program("program");
      await scene.stack("one", { prerequisites: [{ name: "two" }] });
      await scene.stack("two", { prerequisites: [{ name: "three" }] });
      await scene.stack("three", { prerequisites: [{ name: "one" }] });
      expect(message(await stalls(scene, "two", "SpecInvalid"))).toContain("two → three → one → two");
      await stalls(scene, "one", "SpecInvalid");
      await scene.stack("three");
      await Promise.all(["one", "two", "three"].map((name) => scene.isReady(name)));
      expect(scene.simulator.runs.map(({ name }) => name.replace(/-[0-9a-f]*$/, ""))).toEqual(["three", "two", "one"]);
    },
    testTimeoutMs,
  );

  test(
    "a prerequisite that is too old runs once more for all Stacks that depend on it",
    async () => {
      await using scene = await StackScene.open();
      await scene.program("program");
      await scene.stack("base");
      await scene.isReady("base");
      scene.jump(3_600_000);
      const prerequisites = [{ name: "base", requirement: { succeededWithinDuration: "30m" } }];
      await Promise.all(["a", "b", "c"].map((name) => scene.stack(name, { prerequisites })));
      await Promise.all(["a", "b", "c"].map((name) => scene.isReady(name)));
      const base = await scene.get("base");
      expect(base.metadata.annotations?.[reconcileRequestAnnotation]).toMatch(/^after-20/);
      expect(base.metadata.managedFields?.map(({ manager }) => manager)).toContain(
        "pulumi-kubernetes-operator/prerequisite-request",
      );
      expect(scene.simulator.runs.filter(({ name }) => name.startsWith("base")).length).toBe(2);
      expect(scene.runs.length).toBe(5);
    },
    testTimeoutMs,
  );

  test(
    "a missing output is reported, and does not make the other Stack run repeatedly",
    async () => {
      await using scene = await StackScene.open();
      await deployBase(scene);
      const wants = (output: string) => ({ envRefs: { URL: { type: "StackOutput", stack: "base", output } } }) as const;
      await scene.stack("apps", wants("uri"));
      const isReported = (stack: Stack): boolean =>
        (stack.status?.conditions ?? []).some(({ message }) =>
          message.includes("Stack base has no output uri: it has url"),
        );
      await scene.becomes("apps", "reported", isReported);
      await scene.stack("apps", wants("url"));
      await scene.isReady("apps");
      expect(scene.simulator.runs.map(({ name }) => name.split("-")[0])).toEqual(["base", "apps"]);
    },
    testTimeoutMs,
  );

  test(
    "a Stack whose outputs were not stored runs once more for them",
    async () => {
      await using scene = await StackScene.open();
      await deployBase(scene);
      await scene.client.delete(builtin.secrets, { namespace: scene.namespace, name: "base-outputs" });
      await scene.stack("apps", { envRefs: { URL: { type: "StackOutput", stack: "base", output: "url" } } });
      await scene.isReady("apps");
      expect(scene.simulator.runs.map(({ name }) => name.split("-")[0])).toEqual(["base", "base", "apps"]);
    },
    testTimeoutMs,
  );
});

/** A Stack with the output `url`. */
async function deployBase(scene: StackScene): Promise<void> {
  await scene.program("program");
  scene.simulator.script.update = () => ({ end: "succeeded", outputs: { url: "http://web" } });
  await scene.stack("base");
  await scene.isReady("base");
}

describe("the source", () => {
  test(
    "Git over HTTPS: a new commit is found, a missing branch is reported, credentials are checked",
    async () => {
      const authority = await createCa("git");
      const pair = await authority.issue({ commonName: "git", ips: ["127.0.0.1"] });
      using server = gitServer({ tls: pair });
      using polled = gitServer({ tls: pair });
      const folder = mkdtempSync(join(tmpdir(), "git-ca-"));
      writeFileSync(join(folder, "ca.crt"), authority.cert);
      const inherited = { ...process.env, GIT_SSL_CAINFO: join(folder, "ca.crt") };
      await using scene = await StackScene.open({
        git: { policy: { allowHttp: false, allowedAddresses: ["127.0.0.1"] }, inherited },
      });
      server.credentials = "git:hush";
      const first = server.commit();
      const gitAuth = { accessToken: { type: "Secret", secret: { name: "git", key: "token" } } };
      await scene.stack("web", { projectRepo: server.url, branch: "main", repoDir: "infra", gitAuth });
      expect(message(await stalls(scene, "web", "SourceUnavailable"))).toContain("there is no Secret git");
      const metadata = { namespace: scene.namespace, name: "git" };
      await scene.client.create(builtin.secrets, {
        apiVersion: "v1",
        kind: "Secret",
        metadata,
        stringData: { token: "wrong" },
      });
      scene.jump(16_000);
      expect(
        message(await scene.becomes("web", "rejected", (stack) => message(stack).includes("rejects"))),
      ).not.toContain("wrong");
      await scene.client.apply(
        builtin.secrets,
        { apiVersion: "v1", kind: "Secret", metadata, stringData: { token: "hush" } },
        { fieldManager: "test" },
      );
      scene.jump(61_000);
      const ready = await scene.isReady("web", first);
      expect(JSON.stringify(ready.status)).not.toContain("hush");
      const workspace = await scene.client.get(workspaces, { namespace: scene.namespace, name: "web" });
      expect(workspace.spec?.git).toEqual({
        url: server.url,
        ref: first,
        dir: "infra",
        auth: { token: { name: "git", key: "token" } },
      });

      const second = server.commit();
      scene.jump(64_000);
      await scene.isReady("web", second);
      await scene.stack("web", { projectRepo: server.url, branch: "missing", gitAuth });
      expect(message(await stalls(scene, "web", "SourceUnavailable"))).toContain("has no refs/heads/missing");
      await scene.stack("web", { projectRepo: server.url, commit: first, gitAuth });
      await scene.isReady("web", first);
      // A commit does not change: its repository is not polled while another one is.
      const head = polled.commit();
      await scene.stack("polled", { projectRepo: polled.url, branch: "main" });
      await scene.isReady("polled", head);
      const { length } = server.requests;
      for (let poll = 0; poll < 2; poll++) {
        const polls = polled.requests.length;
        scene.jump(600_000);
        await waitFor(() => polled.requests.length > polls, { what: "the other repository to be polled" });
      }
      expect(server.requests.length).toBe(length);
      expect(scene.runs).toEqual([`up@${first}`, `up@${second}`, `up@${first}`, `up@${head}`]);
    },
    testTimeoutMs,
  );
});

describe("workspaces and updates", () => {
  test(
    "a Workspace that fails is reported, and a change of the program retries it",
    async () => {
      await using scene = await StackScene.open();
      await scene.program("program");
      scene.simulator.script.workspace = ({ spec }) =>
        spec?.program?.generation === 1 ? { stalled: "InstallationFailed", message: "npm: 404" } : { ready: true };
      await scene.stack("web");
      expect(message(await stalls(scene, "web", "WorkspaceFailed"))).toContain("npm: 404");
      await scene.program("program", "two");
      await scene.isReady("web", "2");
      expect(scene.runs).toEqual(["up@2"]);
    },
    testTimeoutMs,
  );

  test(
    "templates change the generated objects",
    async () => {
      await using scene = await StackScene.open();
      await scene.program("program");
      await scene.stack("web", {
        refresh: true,
        targets: ["urn:a"],
        useLocalStackOnly: true,
        serviceAccountName: "deployer",
        secretsRef: { "web:password": { type: "Secret", secret: { name: "passwords", key: "web" } } },
        workspaceTemplate: {
          metadata: { labels: { team: "a" } },
          spec: {
            image: "my/image",
            env: [{ name: "EXTRA", value: "1" }],
            podTemplate: { spec: { containers: [{ name: "pulumi", resources: { limits: { memory: "1Gi" } } }] } },
          },
        },
        updateTemplate: { metadata: { labels: { team: "a" } }, spec: { ttlAfterCompleted: "1h", parallel: 3 } },
        backend: "s3://bucket",
      });
      const metadata = { namespace: scene.namespace, name: "passwords" };
      await scene.client.create(builtin.secrets, {
        apiVersion: "v1",
        kind: "Secret",
        metadata,
        stringData: { web: "x" },
      });
      scene.jump(16_000);
      await scene.isReady("web");
      const workspace = await scene.client.get(workspaces, { namespace: scene.namespace, name: "web" });
      expect(workspace.metadata.labels).toEqual({
        team: "a",
        "pulumi.com/component": "stack",
        "pulumi.com/stack-name": "web",
      });
      expect(workspace.spec).toMatchObject({
        image: "my/image",
        serviceAccountName: "deployer",
        env: [
          { name: "PULUMI_BACKEND_URL", value: "s3://bucket" },
          { name: "EXTRA", value: "1" },
        ],
        stacks: [
          {
            name: "dev",
            create: false,
            config: [
              {
                key: "web:password",
                secret: true,
                valueFrom: { path: "/var/run/secrets/stacks.pulumi.com/secrets/passwords/web" },
              },
            ],
          },
        ],
      });
      expect(workspace.spec?.podTemplate?.spec).toMatchObject({
        volumes: [{ name: "secret-passwords", secret: { secretName: "passwords" } }],
        containers: [
          { name: "pulumi", resources: { limits: { memory: "1Gi" } }, volumeMounts: [{ name: "secret-passwords" }] },
        ],
      });
      const { items } = await scene.client.list(updates, { namespace: scene.namespace });
      expect(items[0]?.metadata.labels).toMatchObject({ team: "a" });
      expect(items[0]?.spec).toEqual({
        workspaceName: "web",
        stackName: "dev",
        type: "up",
        refresh: true,
        target: ["urn:a"],
        message: `Stack ${scene.namespace}/web: the first update`,
        parallel: 3,
        ttlAfterCompleted: "3600s",
      });
    },
    testTimeoutMs,
  );

  test(
    "a conflict stalls the Stack, or is retried soon with retryOnUpdateConflict; events report it",
    async () => {
      await using scene = await StackScene.open();
      await scene.program("program");
      scene.simulator.script.update = () => ({ end: "failed", message: "[409] Conflict", errorClass: "conflict" });
      await scene.stack("strict");
      await scene.stack("patient", { retryOnUpdateConflict: true });
      await stalls(scene, "strict", "UpdateConflict");
      await stalls(scene, "patient", "RetryingAfterFailure");
      scene.simulator.script.update = () => ({ end: "succeeded" });
      scene.jump(11_000);
      await Promise.all([scene.isReady("strict"), scene.isReady("patient")]);
      for (const reason of ["StackUpdateConflictDetected", "StackCreated"]) await scene.events(reason);
      const counted = [
        'stack_update_duration_seconds_count{type="up",result="succeeded"} 2\n',
        `stacks_failing{namespace="${scene.namespace}",name="strict"} 0\n`,
      ];
      await waitFor(() => counted.every((line) => scene.operator.metrics.expose().includes(line)), {
        what: "the updates to be counted, which follows the status",
      });
      const exposed = scene.operator.metrics.expose();
      expect(exposed).toContain("stacks_active 2\n");
      expect(exposed).toContain('controller_runtime_reconcile_errors_total{controller="stack-controller"} 0\n');
      expect(exposed).toContain('stack_time_to_first_update_seconds_count{result="failed"} 2\n');
    },
    testTimeoutMs,
  );

  test(
    "a quota blocks the Stack until it is removed",
    async () => {
      await using scene = await StackScene.open();
      scene.rights.expectForbidden(/exceeded quota: none/);
      await scene.program("program");
      const { client, namespace } = scene;
      const { apiVersion, kind } = workspaces;
      const probe = { apiVersion, kind, metadata: { name: "probe", namespace }, spec: {} };
      const quota = await fullQuota({
        client,
        namespace,
        counted: "count/workspaces.auto.pulumi.com",
        probe: () => client.create(workspaces, probe, { dryRun: true }),
      });
      await scene.stack("web");
      expect(message(await stalls(scene, "web", "WorkspaceFailed"))).toContain("exceeded quota");
      await quota[Symbol.asyncDispose]();
      const isReady = async (): Promise<boolean> => {
        scene.jump(61_000);
        return condition(await scene.get("web"), "Ready")?.status === "True";
      };
      await waitFor(isReady, { timeoutMs: 30_000 });
    },
    testTimeoutMs,
  );

  test(
    "in a namespace that is being deleted the destroy cannot run, and the status reports it",
    async () => {
      await using scene = await StackScene.open();
      scene.rights.expectForbidden(/because it is being terminated/);
      await scene.program("program");
      await scene.stack("web", { destroyOnFinalize: true });
      await scene.isReady("web");
      await scene.client.delete(builtin.namespaces, { name: scene.namespace });
      await scene.delete("web");
      const stack = await stalls(scene, "web", "NamespaceTerminating");
      expect(stack.metadata.finalizers).toHaveLength(1);
      expect(scene.runs).toEqual(["up@1"]);
    },
    testTimeoutMs,
  );

  test(
    "a preview shows its output, and writes no outputs Secret",
    async () => {
      await using scene = await StackScene.open();
      await scene.program("program");
      scene.simulator.script.update = () => ({ end: "succeeded", outputs: { url: "http://planned" } });
      await scene.stack("web", { preview: true });
      const ready = await scene.isReady("web");
      expect(ready.status?.lastUpdate).toMatchObject({ type: "preview", summary: "1 unchanged" });
      expect(ready.status?.outputs).toEqual({ url: "http://planned" });
      expect(
        await scene.client.find(builtin.secrets, { namespace: scene.namespace, name: "web-outputs" }),
      ).toBeUndefined();
    },
    testTimeoutMs,
  );
});

describe("after a migration from the Go operator", () => {
  test(
    "a deployed Stack is up to date, and a failed one is retried",
    async () => {
      await using scene = await StackScene.open("without operator");
      await scene.program("program");
      const { apiVersion, kind } = stackKind;
      const time = new Date(Date.now() - 600_000).toISOString();
      for (const [name, state] of [
        ["good", "succeeded"],
        ["bad", "failed"],
      ] as const) {
        await scene.stack(name, { destroyOnFinalize: true });
        const lastUpdate = {
          name: `${name}-18e1b5c2`,
          type: "up",
          state,
          generation: 1,
          lastAttemptedCommit: "1",
          ...(state === "succeeded" && { lastSuccessfulCommit: "1" }),
          lastResyncTime: time,
          failures: state === "failed" ? 2 : 0,
        };
        const conditions = [
          { type: "Ready", status: "True", reason: "ProcessingCompleted", message: "", lastTransitionTime: time },
        ] as const;
        const metadata = { name, namespace: scene.namespace };
        const status = {
          observedGeneration: 1,
          lastUpdate,
          conditions: [...conditions],
          currentUpdate: { name: "old" },
        };
        await scene.client.patch(stacks, metadata, {
          patch: { type: "merge", body: { apiVersion, kind, status } },
          subresource: "status",
          fieldManager: "pulumi-kubernetes-operator/stack-status",
        });
      }
      scene.start();
      const bad = await scene.isReady("bad");
      const good = await scene.becomes("good", "taken over", ({ status }) => status?.currentUpdate === undefined);
      expect(good.status?.lastUpdate?.name).toBe("good-18e1b5c2");
      expect(bad.status?.lastUpdate?.failures).toBe(0);
      expect(scene.runs).toEqual(["up@1"]);
    },
    testTimeoutMs,
  );
});
