/** The objects as YAML, for people to read: `UPDATE_GOLDEN=1 bun test` rewrites them. */
import { describe, expect, test } from "bun:test";
import { fileURLToPath } from "node:url";

import { normalizeWorkspace, workspaceKind, type Workspace } from "@pko/api";
import type { PodSpec } from "kubernetes-types/core/v1";
import { stringify } from "yaml";

import { contentHash } from "../../shared/digest.ts";
import { buildCertificateSecret, buildObjects, certificateIn, type BuiltObjects } from "./build-objects.ts";
import { buildPodTemplate, type PodParts } from "./build-pod.ts";

const parts = { settings: { agentImage: "pulumi/pulumi-kubernetes-operator-agent:1.0.0", idleTimeoutMs: 0 } };

function build(spec: object, more: Partial<PodParts> = {}): BuiltObjects {
  const metadata = { name: "web", namespace: "team", uid: "11111111-2222-3333-4444-555555555555" };
  const workspace: Workspace = { ...workspaceKind, metadata, spec };
  const normal = normalizeWorkspace(workspace);
  if (!normal.ok) throw new Error(JSON.stringify(normal.problems));
  const built = buildPodTemplate(normal.value, { ...parts, ...more });
  if (!built.ok) throw new Error(built.problems.join());
  const objects = buildObjects({ workspace, normal: normal.value, template: built.template, referencesHash: "abc" });
  if (typeof objects === "string") throw new Error(objects);
  return objects;
}

function containersOf(spec: object): PodSpec {
  const pod = build(spec).statefulSet.spec?.template?.spec;
  if (!pod) throw new Error("there is no pod");
  return pod as PodSpec;
}

const golden: Readonly<Record<string, object>> = {
  plain: { stacks: [{ name: "dev" }] },
  baseline: { securityProfile: "baseline", imagePullPolicy: "Always", serviceAccountName: "deployer" },
  templates: {
    image: "registry/mine:1",
    env: [{ name: "TOKEN", valueFrom: { secretKeyRef: { name: "token", key: "t" } } }],
    envFrom: [{ configMapRef: { name: "settings" } }],
    resources: { requests: { cpu: 1 }, limits: { memory: "2Gi" } },
    podTemplate: {
      metadata: { labels: { team: "a" }, annotations: { note: "n" } },
      spec: {
        initContainers: [{ name: "login", image: "login:1", args: ["echo A=1 >> $PULUMI_ENV"] }],
        containers: [
          { name: "pulumi", volumeMounts: [{ name: "cache", mountPath: "/cache" }] },
          { name: "renewer", image: "renewer:1", args: ["echo B=2 >> $PULUMI_ENV"] },
        ],
        volumes: [
          { name: "share", persistentVolumeClaim: { claimName: "share" } },
          { name: "cache", emptyDir: { sizeLimit: "1Gi" } },
        ],
        nodeSelector: { disk: "fast" },
        tolerations: [{ key: "batch", operator: "Exists" }],
        imagePullSecrets: [{ name: "registry" }],
      },
    },
    serviceTemplate: { metadata: { labels: { team: "a" } }, spec: { publishNotReadyAddresses: true } },
  },
};

describe("the objects of a workspace", () => {
  for (const [name, spec] of Object.entries(golden)) {
    test(name, async () => {
      const { service, statefulSet } = build(spec);
      const text = [service, statefulSet]
        .map((object) => stringify(object, { aliasDuplicateObjects: false }))
        .join("---\n");
      const file = Bun.file(fileURLToPath(new URL(`testdata/${name}.yaml`, import.meta.url)));
      if (process.env["UPDATE_GOLDEN"]) await Bun.write(file, text);
      expect(text).toBe(await file.text());
    });
  }

  test("mount a token of the service account, and keep the access token in memory", () => {
    const exchange = {
      organization: "acme",
      holder: { kind: "team", team: "platform" },
      expirationSeconds: 600,
      hasCredentialsPath: false,
    } as const;
    const pod = build({}, { exchange, uid: "w1" }).statefulSet.spec?.template?.spec;
    expect(pod?.volumes?.slice(-2)).toEqual([
      {
        name: "pulumi-oidc",
        projected: {
          sources: [
            { serviceAccountToken: { audience: "urn:pulumi:org:acme", expirationSeconds: 3600, path: "token" } },
          ],
        },
      },
      { name: "pulumi-credentials", emptyDir: { medium: "Memory", sizeLimit: "16Mi" } },
    ]);
    expect(pod?.containers?.[0]?.volumeMounts?.map(({ name }) => name)).toEqual([
      "share",
      "agent-tls",
      "pulumi-oidc",
      "pulumi-credentials",
    ]);
    expect(pod?.containers?.[0]?.command?.slice(4, -1)).toEqual([
      "--workspace-uid=w1",
      "--oidc-token=/var/run/secrets/auto.pulumi.com/oidc/token",
      "--oidc-organization=acme",
      "--oidc-scope=team:platform",
      "--oidc-expiration-seconds=600",
      "--oidc-credentials=/var/run/secrets/auto.pulumi.com/credentials",
    ]);
  });

  test("have a hash that changes only with their content", () => {
    expect(build({ image: "a" }).hash).toBe(build({ image: "a" }).hash);
    expect(build({ image: "a" }).hash).not.toBe(build({ image: "b" }).hash);
    expect(contentHash({ a: 1, b: { c: 2, d: [3, 4] } })).toBe(contentHash({ b: { d: [3, 4], c: 2 }, a: 1 }));
    expect(contentHash([1, 2])).not.toBe(contentHash([2, 1]));
  });

  test("request storage, within the limit", () => {
    const resources = (given: object): unknown =>
      build({ resources: given }).statefulSet.spec?.template?.spec?.containers?.[0]?.resources;
    expect(resources({})).toEqual({
      requests: { "ephemeral-storage": "256Mi", memory: "64Mi", cpu: "100m" },
      limits: { "ephemeral-storage": "10Gi" },
    });
    expect(resources({ requests: { "ephemeral-storage": "1Gi" } })).toMatchObject({
      requests: { "ephemeral-storage": "1Gi" },
    });
    const limits = { "ephemeral-storage": "100Mi" };
    expect(resources({ limits })).toEqual({ requests: { memory: "64Mi", cpu: "100m" }, limits });
  });

  test("limit storage as a template sets it, in the container and in the volume", () => {
    const pulumi = { name: "pulumi", resources: { requests: { "ephemeral-storage": "40Gi" } } };
    const { containers, volumes } =
      build({ podTemplate: { spec: { containers: [pulumi] } } }).statefulSet.spec?.template?.spec ?? {};
    expect(containers?.[0]?.resources?.limits).toEqual({ "ephemeral-storage": "40Gi" });
    expect(volumes?.[0]).toEqual({ name: "share", emptyDir: { sizeLimit: "40Gi" } });
  });

  test("keep the labels that select the pod, whatever a template sets", () => {
    const labels = { "auto.pulumi.com/component": "mine", x: "y" };
    const { template, selector } = build({ podTemplate: { metadata: { labels } } }).statefulSet.spec ?? {};
    expect(template?.metadata?.labels).toEqual({ ...selector?.matchLabels, x: "y" });
  });

  test("give the agent what a template sets for the former fetch container", () => {
    const mount = { name: "authority", mountPath: "/authority" };
    const variable = { name: "SSL_CERT_FILE", value: "/authority/ca.crt" };
    const fetch = { name: "fetch", env: [variable], volumeMounts: [mount, { name: "share", mountPath: "/share" }] };
    const volumes = [{ name: "authority", configMap: { name: "authority" } }];
    const pod = (initContainers: object[]) =>
      build({ podTemplate: { spec: { initContainers, volumes } } }).statefulSet.spec?.template?.spec;
    const adapted = pod([fetch]);
    expect(adapted?.initContainers?.map(({ name }) => name)).toEqual(["bootstrap"]);
    expect(adapted?.containers?.[0]?.env).toContainEqual(variable);
    expect(adapted?.containers?.[0]?.volumeMounts?.map(({ mountPath }) => mountPath)).toEqual([
      "/share",
      "/var/run/secrets/auto.pulumi.com/tls",
      "/authority",
    ]);
    // One that brings an image is the user's own.
    const own = pod([{ ...fetch, image: "fetch:1" }]);
    expect(own?.initContainers?.map(({ name }) => name)).toEqual(["bootstrap", "fetch"]);
    expect(own?.containers?.[0]?.env).not.toContainEqual(variable);
  });

  test("name the agent's port as users' network policies expect", () => {
    const { service, statefulSet } = build({});
    expect(service.spec?.ports?.map(({ name }) => name)).toEqual(["grpc"]);
    const ports = statefulSet.spec?.template?.spec?.containers?.[0]?.ports;
    expect(ports).toEqual([{ name: "grpc", containerPort: 50_051 }]);
  });

  test("let every container write the file with variables", () => {
    const sidecars = [
      { name: "plain", image: "i" },
      { name: "own", image: "i", env: [{ name: "PULUMI_ENV", value: "/x" }] },
    ];
    const spec = build({
      podTemplate: { spec: { containers: sidecars, initContainers: [{ name: "first", image: "i" }] } },
    }).statefulSet.spec?.template?.spec;
    const all = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
    const fileOf = Object.fromEntries(
      all.map(({ name, env }) => [name, env?.filter((each) => each.name === "PULUMI_ENV").map(({ value }) => value)]),
    );
    const ours = ["/share/.env"];
    expect(fileOf).toEqual({ bootstrap: ours, first: ours, pulumi: ours, plain: ours, own: ["/x"] });
    for (const { volumeMounts } of all) expect(volumeMounts).toContainEqual({ name: "share", mountPath: "/share" });
  });

  test("are refused if the template violates the security profile, unless the operator does not enforce it", () => {
    const podTemplate = { spec: { volumes: [{ name: "docker", hostPath: { path: "/var/run/docker.sock" } }] } };
    expect(() => build({ podTemplate })).toThrow("volumes[docker] is a hostPath");
    const settings = { ...parts.settings, enforceSecurityProfile: false };
    const spec = build({ podTemplate }, { settings }).statefulSet.spec?.template?.spec;
    expect(spec?.volumes).toContainEqual({ name: "docker", hostPath: { path: "/var/run/docker.sock" } });
    expect(spec?.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
  });

  test("start in the folder of the program, which bootstrap creates unless an init container provides it", () => {
    const bootstrapOf = (spec: object) => containersOf(spec).initContainers?.[0]?.command;
    expect(bootstrapOf({ git: { url: "https://example.com/r", ref: "main" } })).toEqual([
      "/agent",
      "install",
      "/share/agent-bin",
      "/share/workspace",
    ]);
    expect(bootstrapOf({})).toEqual(["/agent", "install", "/share/agent-bin"]);
    expect(containersOf({}).containers[0]?.workingDir).toBe("/share/workspace");
  });

  test("leave the CLI's folder to the image", () => {
    expect(containersOf({}).containers[0]?.env?.map(({ name }) => name)).not.toContain("PULUMI_HOME");
  });

  test("let a shell find the access token, unless the container sets its own path", () => {
    const envFrom = [{ secretRef: { name: "variables" } }];
    const exchange = {
      organization: "acme",
      holder: { kind: "organization", admin: false },
      expirationSeconds: 600,
    } as const;
    const valueWith = (hasCredentialsPath: boolean): unknown =>
      build(
        { envFrom },
        { exchange: { ...exchange, hasCredentialsPath } },
      ).statefulSet.spec?.template?.spec?.containers?.[0]?.env?.find(({ name }) => name === "PULUMI_CREDENTIALS_PATH")
        ?.value;
    expect(valueWith(false)).toBe("/var/run/secrets/auto.pulumi.com/credentials");
    expect(valueWith(true)).toBeUndefined();
  });

  test("let the user's variables take precedence over ours", () => {
    const containers = build({ env: [{ name: "PULUMI_ENV", value: "/mine" }] }).statefulSet.spec?.template?.spec
      ?.containers;
    expect(containers?.[0]?.env?.filter(({ name }) => name === "PULUMI_ENV")).toEqual([
      { name: "PULUMI_ENV", value: "/mine" },
    ]);
  });
});

test("a certificate is read from its Secret as it was written", () => {
  const certificate = { ca: "CA", cert: "CERT", key: "KEY" };
  const workspace: Workspace = { ...workspaceKind, metadata: { name: "web", namespace: "team", uid: "u" } };
  const secret = buildCertificateSecret(workspace, certificate);
  expect(secret).toMatchObject({
    metadata: { name: "web-workspace-tls", namespace: "team" },
    type: "kubernetes.io/tls",
  });
  expect(
    certificateIn({ apiVersion: "v1", kind: "Secret", metadata: {}, data: secret.data as Record<string, string> }),
  ).toEqual(certificate);
  expect(certificateIn({ apiVersion: "v1", kind: "Secret", metadata: {} })).toBeUndefined();
});
