/** Stacks that are valid for the Go operator stay valid, and invalid Stacks that already exist stay editable. */
import { normalizeStack } from "@pko/api";
import type { Stack, StackSpec } from "@pko/api";
import { resource } from "@pko/kube";
import { startApiServer, testNamespace, waitFor, type ApiServer } from "@pko/testkit";
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { apiServerWithApi, testTimeoutMs, quickstart, stacks } from "./install.ts";

setDefaultTimeout(testTimeoutMs);

let server: ApiServer;

beforeAll(async () => {
  server = await apiServerWithApi();
}, testTimeoutMs);

const secret = (fields: object = {}) => ({ type: "Secret", secret: { name: "s", key: "k", ...fields } });
const git = { stack: "dev", projectRepo: "https://host/repo", branch: "main" };
const program = { stack: "dev", programRef: { name: "web" } };
const source = { apiVersion: "source.toolkit.fluxcd.io/v1beta2", kind: "OCIRepository", name: "repo" };

const stackOf = (spec: StackSpec, namespace: string): Stack => ({
  apiVersion: stacks.apiVersion,
  kind: stacks.kind,
  metadata: { name: "web", namespace },
  spec,
});

describe("the API server accepts, and the operator normalizes", () => {
  const cases: [string, StackSpec][] = [
    ["a resync interval below the minimum", { ...program, resyncFrequencySeconds: 10 }],
    ["a resync interval of 0", { ...program, resyncFrequencySeconds: 0 }],
    ["a negative backoff, which means the default", { ...program, retryMaxBackoffDurationSeconds: -1 }],
    ["an empty branch and a commit", { ...git, branch: "", commit: "0".repeat(40) }],
    ["a commit in branch", { ...git, branch: "0".repeat(40) }],
    ["the name of a tag in commit", { ...git, branch: "", commit: "v1.0" }],
    ["a pull request in branch", { ...git, branch: "refs/pull/1/head" }],
    [
      "empty Git fields and a Flux source",
      { stack: "dev", fluxSource: { sourceRef: source }, projectRepo: "", branch: "" },
    ],
    ["two kinds of credentials", { ...git, gitAuth: { accessToken: secret(), sshAuth: { sshPrivateKey: secret() } } }],
    ["a repository over SSH", { ...git, projectRepo: "git@github.com:org/repo.git", gitAuthSecret: "git" }],
    ["a reference with an unused field", { ...program, envRefs: { A: { ...secret(), literal: { value: "v" } } } }],
    ["an empty literal", { ...program, envRefs: { A: { type: "Literal", literal: { value: "" } } } }],
    ["a Git source patched by the template", { ...git, workspaceTemplate: { spec: { git: { shallow: true } } } }],
    [
      "a source only in the template",
      { stack: "dev", workspaceTemplate: { spec: { git: { url: "https://h/r", ref: "main" } } } },
    ],
    [
      "no source, but an init container",
      { stack: "dev", workspaceTemplate: { spec: { initContainers: [{ name: "copy", image: "busybox" }] } } },
    ],
    [
      "no source, but an init container in the pod template",
      {
        stack: "dev",
        workspaceTemplate: {
          spec: { podTemplate: { spec: { initContainers: [{ name: "copy", image: "busybox" }] } } },
        },
      },
    ],
    ["a name of 42 characters for another Stack", { ...program, prerequisites: [{ name: "a".repeat(42) }] }],
    ["a negative time to live", { ...program, updateTemplate: { spec: { ttlAfterCompleted: "-1h" } } }],
    [
      "no targets, configuration or environment",
      { ...program, targets: [], config: {}, envRefs: {}, envs: [], prerequisites: [] },
    ],
    [
      "a pod template with volumes, mounts and tolerations",
      {
        ...program,
        workspaceTemplate: {
          metadata: { labels: { team: "web" } },
          spec: {
            securityProfile: "baseline",
            imagePullPolicy: "IfNotPresent",
            resources: { requests: { cpu: 1, memory: "512Mi" } },
            env: [{ name: "A", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
            envFrom: [{ secretRef: { name: "aws" } }],
            pulumiLogLevel: 9,
            serviceTemplate: { metadata: { annotations: { mesh: "off" } } },
            podTemplate: {
              spec: {
                terminationGracePeriodSeconds: 3600,
                tolerations: [{ key: "a", operator: "Exists", effect: "NoSchedule" }],
                containers: [{ name: "pulumi", volumeMounts: [{ name: "state", mountPath: "/state" }] }],
                volumes: [{ name: "state", persistentVolumeClaim: { claimName: "state" } }],
              },
            },
          },
        },
      },
    ],
  ];
  for (const [what, spec] of cases) {
    test(what, async () => {
      const stack = stackOf(spec, "default");
      const stored = await server.client.create(stacks, stack, { dryRun: true, fieldValidation: "Strict" });
      expect(stored.spec).toEqual(spec);
      expect(normalizeStack(stored).ok).toBe(true);
    });
  }

  test("a reference that names its own namespace", async () => {
    await using namespace = await testNamespace();
    const spec = { ...program, envRefs: { A: secret({ namespace: namespace.name }) } };
    const stored = await server.client.create(stacks, stackOf(spec, namespace.name), { fieldValidation: "Strict" });
    expect(normalizeStack(stored).ok).toBe(true);
  });

  test("a Stack as v1alpha1", async () => {
    const older = resource<Stack>({ ...stacks, apiVersion: "pulumi.com/v1alpha1" });
    const stack = { ...stackOf(git, "default"), apiVersion: older.apiVersion };
    await server.client.create(older, stack, { dryRun: true, fieldValidation: "Strict" });
  });
});

/** A CRD without validation rules, like that of the Go operator. */
const permissive = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "stacks.pulumi.com" },
  spec: {
    group: "pulumi.com",
    scope: "Namespaced",
    names: { kind: "Stack", listKind: "StackList", plural: "stacks", singular: "stack" },
    versions: ["v1", "v1alpha1"].map((name) => ({
      name,
      served: true,
      storage: name === "v1",
      subresources: { status: {} },
      schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
    })),
  },
};

test("an invalid Stack from before the rules can still be updated and deleted", async () => {
  const own = await startApiServer();
  try {
    await own.kubectl(["apply", "--filename", "-"], { input: JSON.stringify(permissive) });
    const name = "a".repeat(50);
    const old = {
      ...stackOf({ stack: "dev", branch: "main", envRefs: { A: { type: "Env", env: { name: "HOME" } } } }, "default"),
      metadata: { name, namespace: "default", finalizers: ["finalizer.stack.pulumi.com"] },
    };
    await waitFor(async () => own.client.create(stacks, old), {
      timeoutMs: testTimeoutMs / 2,
      what: "Stacks to be served",
    });
    await own.kubectl(["apply", "--filename", quickstart]);
    const ref = { name, namespace: "default" };
    await waitFor(async () => isRejected(own, old), { timeoutMs: testTimeoutMs / 2, what: "the rules to be in force" });

    const status = { observedGeneration: 1 };
    await own.client.patch(stacks, ref, { patch: { type: "merge", body: { status } }, subresource: "status" });
    const annotations = { "pulumi.com/reconciliation-request": "now" };
    await own.client.patch(stacks, ref, { patch: { type: "merge", body: { metadata: { annotations } } } });
    await own.client.delete(stacks, ref);
    await own.client.patch(stacks, ref, { patch: { type: "merge", body: { metadata: { finalizers: null } } } });
    expect(await own.client.find(stacks, ref)).toBeUndefined();
  } finally {
    await own.stop();
  }
});

async function isRejected(own: ApiServer, stack: Stack): Promise<boolean> {
  const copy = { ...stack, metadata: { name: "copy", namespace: "default" } };
  const outcome = await own.client.create(stacks, copy, { dryRun: true }).catch(() => "rejected");
  return outcome === "rejected";
}
