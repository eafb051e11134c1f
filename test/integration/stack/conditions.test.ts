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

import { condition, testTimeoutMs, reasonOf, Stage } from "./harness.ts";
import { gitServer } from "./git-server.ts";

const message = (stack: Stack): string => condition(stack, "Ready")?.message ?? "";
const stalls = (stage: Stage, name: string, reason: string): Promise<Stack> =>
  stage.becomes(name, reason, (stack) => reasonOf(stack) === reason);

describe("inputs", () => {
  test(
    "a Secret that is created late, and a wrong key",
    async () => {
      await using stage = await Stage.set();
      await stage.program("program");
      await stage.stack("web", {
        envRefs: { TOKEN: { type: "Secret", secret: { name: "token", key: "value" } } },
        configRefs: { "web:size": { name: "sizes", key: "size", json: true } },
      });
      const waiting = await stalls(stage, "web", "SpecInvalid");
      expect(message(waiting)).toContain(
        "there is no Secret token, which the variable TOKEN needs; there is no ConfigMap sizes",
      );
      const metadata = { namespace: stage.namespace };
      await stage.client.create(builtin.secrets, {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { ...metadata, name: "token" },
        stringData: { other: "x" },
      });
      await stage.client.create(builtin.configMaps, {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { ...metadata, name: "sizes" },
        data: { size: "{" },
      });
      stage.jump(16_000);
      const notJson = "the key size of the ConfigMap sizes is not valid JSON";
      const wrong = await stage.becomes("web", "stalled by the value", (stack) => message(stack).includes(notJson));
      expect(message(wrong)).toContain("the Secret token has no key value");
      await stage.client.apply(
        builtin.secrets,
        { apiVersion: "v1", kind: "Secret", metadata: { ...metadata, name: "token" }, stringData: { value: "canary" } },
        { fieldManager: "test" },
      );
      await stage.client.apply(
        builtin.configMaps,
        { apiVersion: "v1", kind: "ConfigMap", metadata: { ...metadata, name: "sizes" }, data: { size: "3" } },
        { fieldManager: "test" },
      );
      stage.jump(16_000);
      await stage.isReady("web");
      const workspace = await stage.client.get(workspaces, { namespace: stage.namespace, name: "web" });
      expect(workspace.spec?.stacks?.[0]?.config).toEqual([
        {
          key: "web:size",
          valueFrom: { path: "/var/run/configmaps/stacks.pulumi.com/configmaps/sizes/size", json: true },
        },
      ]);
      expect(JSON.stringify([workspace, await stage.get("web")])).not.toContain("canary");
    },
    testTimeoutMs,
  );

  test(
    "a dependency cycle is reported; the Stacks continue when it is broken",
    async () => {
      await using stage = await Stage.set();
      await stage.program("program");
      await stage.stack("one", { prerequisites: [{ name: "two" }] });
      await stage.stack("two", { prerequisites: [{ name: "three" }] });
      await stage.stack("three", { prerequisites: [{ name: "one" }] });
      expect(message(await stalls(stage, "two", "SpecInvalid"))).toContain("two → three → one → two");
      await stalls(stage, "one", "SpecInvalid");
      await stage.stack("three");
      await Promise.all(["one", "two", "three"].map((name) => stage.isReady(name)));
      expect(stage.simulator.runs.map(({ name }) => name.replace(/-[0-9a-f]*$/, ""))).toEqual(["three", "two", "one"]);
    },
    testTimeoutMs,
  );

  test(
    "a prerequisite that is too old runs once more for all Stacks that depend on it",
    async () => {
      await using stage = await Stage.set();
      await stage.program("program");
      await stage.stack("base");
      await stage.isReady("base");
      stage.jump(3_600_000);
      const prerequisites = [{ name: "base", requirement: { succeededWithinDuration: "30m" } }];
      await Promise.all(["a", "b", "c"].map((name) => stage.stack(name, { prerequisites })));
      await Promise.all(["a", "b", "c"].map((name) => stage.isReady(name)));
      const base = await stage.get("base");
      expect(base.metadata.annotations?.[reconcileRequestAnnotation]).toMatch(/^after-20/);
      expect(base.metadata.managedFields?.map(({ manager }) => manager)).toContain(
        "pulumi-kubernetes-operator/prerequisite-request",
      );
      expect(stage.simulator.runs.filter(({ name }) => name.startsWith("base")).length).toBe(2);
      expect(stage.runs.length).toBe(5);
    },
    testTimeoutMs,
  );

  test(
    "a missing output is reported, and does not make the other Stack run repeatedly",
    async () => {
      await using stage = await Stage.set();
      await deployBase(stage);
      const wants = (output: string) => ({ envRefs: { URL: { type: "StackOutput", stack: "base", output } } }) as const;
      await stage.stack("apps", wants("uri"));
      const isReported = (stack: Stack): boolean =>
        (stack.status?.conditions ?? []).some(({ message }) =>
          message.includes("Stack base has no output uri: it has url"),
        );
      await stage.becomes("apps", "reported", isReported);
      await stage.stack("apps", wants("url"));
      await stage.isReady("apps");
      expect(stage.simulator.runs.map(({ name }) => name.split("-")[0])).toEqual(["base", "apps"]);
    },
    testTimeoutMs,
  );

  test(
    "a Stack whose outputs were not stored runs once more for them",
    async () => {
      await using stage = await Stage.set();
      await deployBase(stage);
      await stage.client.delete(builtin.secrets, { namespace: stage.namespace, name: "base-outputs" });
      await stage.stack("apps", { envRefs: { URL: { type: "StackOutput", stack: "base", output: "url" } } });
      await stage.isReady("apps");
      expect(stage.simulator.runs.map(({ name }) => name.split("-")[0])).toEqual(["base", "base", "apps"]);
    },
    testTimeoutMs,
  );
});

/** A Stack with the output `url`. */
async function deployBase(stage: Stage): Promise<void> {
  await stage.program("program");
  stage.simulator.script.update = () => ({ end: "succeeded", outputs: { url: "http://web" } });
  await stage.stack("base");
  await stage.isReady("base");
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
      await using stage = await Stage.set({
        git: { policy: { allowHttp: false, allowedAddresses: ["127.0.0.1"] }, inherited },
      });
      server.credentials = "git:hush";
      const first = server.commit();
      const gitAuth = { accessToken: { type: "Secret", secret: { name: "git", key: "token" } } };
      await stage.stack("web", { projectRepo: server.url, branch: "main", repoDir: "infra", gitAuth });
      expect(message(await stalls(stage, "web", "SourceUnavailable"))).toContain("there is no Secret git");
      const metadata = { namespace: stage.namespace, name: "git" };
      await stage.client.create(builtin.secrets, {
        apiVersion: "v1",
        kind: "Secret",
        metadata,
        stringData: { token: "wrong" },
      });
      stage.jump(16_000);
      expect(
        message(await stage.becomes("web", "rejected", (stack) => message(stack).includes("rejects"))),
      ).not.toContain("wrong");
      await stage.client.apply(
        builtin.secrets,
        { apiVersion: "v1", kind: "Secret", metadata, stringData: { token: "hush" } },
        { fieldManager: "test" },
      );
      stage.jump(61_000);
      const ready = await stage.isReady("web", first);
      expect(JSON.stringify(ready.status)).not.toContain("hush");
      const workspace = await stage.client.get(workspaces, { namespace: stage.namespace, name: "web" });
      expect(workspace.spec?.git).toEqual({
        url: server.url,
        ref: first,
        dir: "infra",
        auth: { token: { name: "git", key: "token" } },
      });

      const second = server.commit();
      stage.jump(64_000);
      await stage.isReady("web", second);
      await stage.stack("web", { projectRepo: server.url, branch: "missing", gitAuth });
      expect(message(await stalls(stage, "web", "SourceUnavailable"))).toContain("has no refs/heads/missing");
      await stage.stack("web", { projectRepo: server.url, commit: first, gitAuth });
      await stage.isReady("web", first);
      // A commit does not change: its repository is not polled while another one is.
      const head = polled.commit();
      await stage.stack("polled", { projectRepo: polled.url, branch: "main" });
      await stage.isReady("polled", head);
      const { length } = server.requests;
      for (let poll = 0; poll < 2; poll++) {
        const polls = polled.requests.length;
        stage.jump(600_000);
        await waitFor(() => polled.requests.length > polls, { what: "the other repository to be polled" });
      }
      expect(server.requests.length).toBe(length);
      expect(stage.runs).toEqual([`up@${first}`, `up@${second}`, `up@${first}`, `up@${head}`]);
    },
    testTimeoutMs,
  );
});

describe("workspaces and updates", () => {
  test(
    "a Workspace that fails is reported, and a change of the program retries it",
    async () => {
      await using stage = await Stage.set();
      await stage.program("program");
      stage.simulator.script.workspace = ({ spec }) =>
        spec?.program?.generation === 1 ? { stalled: "InstallationFailed", message: "npm: 404" } : { ready: true };
      await stage.stack("web");
      expect(message(await stalls(stage, "web", "WorkspaceFailed"))).toContain("npm: 404");
      await stage.program("program", "two");
      await stage.isReady("web", "2");
      expect(stage.runs).toEqual(["up@2"]);
    },
    testTimeoutMs,
  );

  test(
    "templates change the generated objects",
    async () => {
      await using stage = await Stage.set();
      await stage.program("program");
      await stage.stack("web", {
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
      const metadata = { namespace: stage.namespace, name: "passwords" };
      await stage.client.create(builtin.secrets, {
        apiVersion: "v1",
        kind: "Secret",
        metadata,
        stringData: { web: "x" },
      });
      stage.jump(16_000);
      await stage.isReady("web");
      const workspace = await stage.client.get(workspaces, { namespace: stage.namespace, name: "web" });
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
      const { items } = await stage.client.list(updates, { namespace: stage.namespace });
      expect(items[0]?.metadata.labels).toMatchObject({ team: "a" });
      expect(items[0]?.spec).toEqual({
        workspaceName: "web",
        stackName: "dev",
        type: "up",
        refresh: true,
        target: ["urn:a"],
        message: `Stack ${stage.namespace}/web: the first update`,
        parallel: 3,
        ttlAfterCompleted: "3600s",
      });
    },
    testTimeoutMs,
  );

  test(
    "a conflict stalls the Stack, or is retried soon with retryOnUpdateConflict; events report it",
    async () => {
      await using stage = await Stage.set();
      await stage.program("program");
      stage.simulator.script.update = () => ({ end: "failed", message: "[409] Conflict", errorClass: "conflict" });
      await stage.stack("strict");
      await stage.stack("patient", { retryOnUpdateConflict: true });
      await stalls(stage, "strict", "UpdateConflict");
      await stalls(stage, "patient", "RetryingAfterFailure");
      stage.simulator.script.update = () => ({ end: "succeeded" });
      stage.jump(11_000);
      await Promise.all([stage.isReady("strict"), stage.isReady("patient")]);
      const reasons = async (): Promise<boolean> => {
        const { items } = await stage.client.list(builtin.events, { namespace: stage.namespace });
        const reported = new Set(items.map(({ reason }) => reason));
        return reported.has("StackUpdateConflictDetected") && reported.has("StackCreated");
      };
      await waitFor(reasons, { timeoutMs: 20_000 });
      const exposed = stage.operator.metrics.expose();
      expect(exposed).toContain("stacks_active 2\n");
      expect(exposed).toContain(`stacks_failing{namespace="${stage.namespace}",name="strict"} 0\n`);
      expect(exposed).toContain('controller_runtime_reconcile_errors_total{controller="stack-controller"} 0\n');
      expect(exposed).toContain('stack_update_duration_seconds_count{type="up",result="succeeded"} 2\n');
      expect(exposed).toContain('stack_time_to_first_update_seconds_count{result="failed"} 2\n');
    },
    testTimeoutMs,
  );

  test(
    "a quota blocks the Stack until it is removed",
    async () => {
      await using stage = await Stage.set();
      stage.rights.expectForbidden(/exceeded quota: none/);
      await stage.program("program");
      const { client, namespace } = stage;
      const { apiVersion, kind } = workspaces;
      const probe = { apiVersion, kind, metadata: { name: "probe", namespace }, spec: {} };
      const quota = await fullQuota({
        client,
        namespace,
        counted: "count/workspaces.auto.pulumi.com",
        probe: () => client.create(workspaces, probe, { dryRun: true }),
      });
      await stage.stack("web");
      expect(message(await stalls(stage, "web", "WorkspaceFailed"))).toContain("exceeded quota");
      await quota[Symbol.asyncDispose]();
      const isReady = async (): Promise<boolean> => {
        stage.jump(61_000);
        return condition(await stage.get("web"), "Ready")?.status === "True";
      };
      await waitFor(isReady, { timeoutMs: 30_000 });
    },
    testTimeoutMs,
  );

  test(
    "in a namespace that is being deleted the destroy cannot run, and the status reports it",
    async () => {
      await using stage = await Stage.set();
      stage.rights.expectForbidden(/because it is being terminated/);
      await stage.program("program");
      await stage.stack("web", { destroyOnFinalize: true });
      await stage.isReady("web");
      await stage.client.delete(builtin.namespaces, { name: stage.namespace });
      await stage.delete("web");
      const stack = await stalls(stage, "web", "NamespaceTerminating");
      expect(stack.metadata.finalizers).toHaveLength(1);
      expect(stage.runs).toEqual(["up@1"]);
    },
    testTimeoutMs,
  );

  test(
    "a preview shows its output, and writes no outputs Secret",
    async () => {
      await using stage = await Stage.set();
      await stage.program("program");
      stage.simulator.script.update = () => ({ end: "succeeded", outputs: { url: "http://planned" } });
      await stage.stack("web", { preview: true });
      const ready = await stage.isReady("web");
      expect(ready.status?.lastUpdate).toMatchObject({ type: "preview", summary: "1 unchanged" });
      expect(ready.status?.outputs).toEqual({ url: "http://planned" });
      expect(
        await stage.client.find(builtin.secrets, { namespace: stage.namespace, name: "web-outputs" }),
      ).toBeUndefined();
    },
    testTimeoutMs,
  );
});

describe("after a migration from the Go operator", () => {
  test(
    "a deployed Stack is up to date, and a failed one is retried",
    async () => {
      await using stage = await Stage.set("empty");
      await stage.program("program");
      const { apiVersion, kind } = stackKind;
      const time = new Date(Date.now() - 600_000).toISOString();
      for (const [name, state] of [
        ["good", "succeeded"],
        ["bad", "failed"],
      ] as const) {
        await stage.stack(name, { destroyOnFinalize: true });
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
        const metadata = { name, namespace: stage.namespace };
        const status = {
          observedGeneration: 1,
          lastUpdate,
          conditions: [...conditions],
          currentUpdate: { name: "old" },
        };
        await stage.client.patch(stacks, metadata, {
          patch: { type: "merge", body: { apiVersion, kind, status } },
          subresource: "status",
          fieldManager: "pulumi-kubernetes-operator/stack-status",
        });
      }
      stage.start();
      const bad = await stage.isReady("bad");
      const good = await stage.becomes("good", "taken over", ({ status }) => status?.currentUpdate === undefined);
      expect(good.status?.lastUpdate?.name).toBe("good-18e1b5c2");
      expect(bad.status?.lastUpdate?.failures).toBe(0);
      expect(stage.runs).toEqual(["up@1"]);
    },
    testTimeoutMs,
  );
});
