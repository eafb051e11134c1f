/** A WorkspaceClass with caches and a policy pack: what a second workspace downloads, what a violation looks like, and a provider plugin. */
import { beforeAll, expect, test } from "bun:test";
import { join } from "node:path";

import { layout, providerVersion, publishImage, repositoryRoot, stateRoot } from "@pko/cluster";
import { builtin } from "@pko/kube";

import {
  applyTo,
  CliUser,
  createClass,
  deleteStack,
  eventsJson,
  isAt,
  isReady,
  killPod,
  newStack,
  podUid,
  reconcileAndWait,
  requestReconcile,
  stackUntil,
  untilEvents,
  useScene,
} from "../harness.ts";
import { servePackages, type PackageServer } from "./package-server.ts";
import { servePlugins } from "./plugin-server.ts";

const slow = 600_000;
const image = "docker.io/library/policies:test";

const scene = useScene("classes");
let packages: PackageServer;

beforeAll(async () => {
  const context = join(repositoryRoot, "test/e2e/classes/policy-pack");
  await publishImage({ name: image, containerfile: join(context, "Containerfile"), context }, layout(stateRoot).images);
  packages = servePackages();
  scene.defer(() => packages.stop());
  const env = [
    { name: "npm_config_registry", value: packages.origin },
    { name: "npm_config_audit", value: "false" },
    { name: "npm_config_update_notifier", value: "false" },
  ];
  await createClass(scene, {
    template: { spec: { image, env } },
    limits: { resources: { memory: "2Gi" } },
    caches: { size: "1Gi", tools: ["Plugins", "Npm"] },
    policyPacks: [{ name: "teams", image, path: "/packs/teams" }],
  });
}, slow);

test(
  "a second workspace downloads nothing that the first one has downloaded",
  async () => {
    scene.git.create("web").commit(packages.program);
    await applyTo(scene, newStack("one", scene.git.source("web")));
    const one = await stackUntil(scene, "one", isReady);
    expect(one.status?.outputs).toEqual({ text: "tiny" });
    const downloads = packages.requests.filter((path) => /\.tgz$|\.tar\.gz$/.test(path));
    expect(downloads.length).toBe(2);

    const before = packages.requests.length;
    await applyTo(scene, newStack("two", scene.git.source("web")));
    const two = await stackUntil(scene, "two", isReady);
    expect(two.status?.outputs).toEqual({ text: "tiny" });
    expect(packages.requests.slice(before)).toEqual([]);
  },
  slow,
);

test(
  "an update that violates a mandatory policy fails with the text of the policy",
  async () => {
    const repository = scene.git.create("public");
    const programWith = (input: string) => ({
      "Pulumi.yaml": JSON.stringify({
        name: "public",
        runtime: "yaml",
        resources: { a: { type: "pulumi:index:Stash", properties: { input } } },
      }),
    });
    repository.commit(programWith("public"));
    await applyTo(scene, newStack("public", { ...scene.git.source("public"), maxFailures: 1 }));
    const failed = await stackUntil(scene, "public", ({ status }) => status?.lastUpdate?.state === "failed");
    expect(failed.status?.lastUpdate).toMatchObject({ failure: "policyViolation" });
    expect(failed.status?.lastUpdate?.message).toContain("teams/no-public: the input must not be public");
    await untilEvents(scene, "public", "StackPolicyViolated");
    expect(await eventsJson(scene, "public")).toContain("the input must not be public");
    expect((await new CliUser(() => scene).why("public")).cause).toBe("policyViolation");
    repository.commit(programWith("private"));
    await stackUntil(scene, "public", isReady);
  },
  slow,
);

const configMaps = { apiGroups: [""], resources: ["configmaps"] };

/** The rights that the provider needs for a ConfigMap. */
const editorOfConfigMaps = (): object[] => [
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "Role",
    metadata: { name: "settings" },
    rules: [{ ...configMaps, verbs: ["get", "create", "patch", "delete"] }],
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: { name: "settings" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "settings" },
    subjects: [{ kind: "ServiceAccount", name: "pulumi", namespace: scene.namespace }],
  },
];

const settingsWith = (color: string, pluginDownloadURL: string): Record<string, string> => ({
  "Pulumi.yaml": JSON.stringify({
    name: "settings",
    runtime: "yaml",
    resources: {
      settings: {
        type: "kubernetes:core/v1:ConfigMap",
        properties: { metadata: { name: "settings" }, data: { color } },
        options: { version: providerVersion, pluginDownloadURL },
      },
    },
  }),
});

test(
  "a provider plugin is downloaded once, and has the rights of the workspace's service account",
  async () => {
    const plugins = await servePlugins(scene, scene.folder);
    const repository = scene.git.create("settings");
    repository.commit(settingsWith("red", plugins.url));
    await applyTo(scene, newStack("settings", { ...scene.git.source("settings"), destroyOnFinalize: true }));
    const denied = await stackUntil(scene, "settings", ({ status }) => status?.lastUpdate?.state === "failed");
    expect(denied.status?.lastUpdate?.message).toContain(
      `configmaps "settings" is forbidden: User "system:serviceaccount:${scene.namespace}:pulumi" cannot patch`,
    );

    await applyTo(scene, ...editorOfConfigMaps());
    await reconcileAndWait(scene, "settings", "granted");
    const settings = { namespace: scene.namespace, name: "settings" };
    expect((await scene.client.get(builtin.configMaps, settings)).data).toEqual({ color: "red" });
    expect((await plugins.downloads()).length).toBe(1);

    const pod = await podUid(scene, "settings");
    await killPod(scene, "settings");
    const second = repository.commit(settingsWith("blue", plugins.url));
    await requestReconcile(scene, "settings", "second");
    await stackUntil(scene, "settings", isAt(second));
    expect((await scene.client.get(builtin.configMaps, settings)).data).toEqual({ color: "blue" });
    expect(await podUid(scene, "settings")).not.toBe(pod);
    expect((await plugins.downloads()).length).toBe(1);

    await deleteStack(scene, "settings");
    expect(await scene.client.find(builtin.configMaps, settings)).toBeUndefined();
  },
  slow,
);
