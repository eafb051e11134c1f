/** WorkspaceClasses with a real API server: admission, defaults, limits, conflicts, claims, and an operator without them. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { type WorkspaceClass, type WorkspaceClassSpec } from "@pko/api";
import { builtin, connect, isInvalid, isNotFound, logger, type ApiObject } from "@pko/kube";
import { classReflectors, workspaceClasses, workspaces } from "@pko/operator";
import { waitFor } from "@pko/testkit";
import type { PersistentVolumeClaim } from "kubernetes-types/core/v1";

import { operatorAccount } from "../../rights/account.ts";
import { apiServerWithApi } from "../api/install.ts";
import type { Scene } from "../harness/scene.ts";
import { decide } from "../approvals/decide.ts";
import { condition, reasonOf, StackScene } from "../stack/scene.ts";
import { complete, testTimeoutMs, WorkspaceScene } from "./scene.ts";

setDefaultTimeout(testTimeoutMs);

const spec = { local: { dir: "/app" }, stacks: [{ name: "dev" }] };
const namesLabel = "kubernetes.io/metadata.name";

type Rules = Omit<WorkspaceClassSpec, "namespaceSelector">;

function newClass(name: string, wanted: unknown): WorkspaceClass {
  const { apiVersion, kind } = workspaceClasses;
  return { apiVersion, kind, metadata: { name }, spec: wanted } as WorkspaceClass;
}

const uniqueName = (name: string): string => `${name}-${crypto.randomUUID().slice(0, 8)}`;

type ClassScene = StackScene | WorkspaceScene;

/** Waits until the operator's store shows the class in this version, which the next Stack or Workspace then gets. */
async function isStored({ operator }: ClassScene, { metadata }: WorkspaceClass): Promise<void> {
  const { store } = operator.stores.workspaceClasses.classes;
  const { name = "", resourceVersion = "" } = metadata;
  await waitFor(() => store.get(name)?.metadata.resourceVersion === resourceVersion, {
    what: "the class in the store",
  });
}

/** A class for the namespaces of these scenes, deleted with the first of them. */
async function classFor(
  scenes: readonly [ClassScene, ...ClassScene[]],
  rules: Rules,
  name = uniqueName("class"),
): Promise<string> {
  const [{ client }] = scenes;
  const values = scenes.map(({ namespace }) => namespace);
  const namespaceSelector = { matchExpressions: [{ key: namesLabel, operator: "In", values }] };
  const wanted = newClass(name, { namespaceSelector, ...rules });
  const created = await client.create(workspaceClasses, wanted, { fieldValidation: "Strict" });
  scenes[0].defer(() => removeClass(scenes[0], name));
  for (const scene of scenes) await isStored(scene, created);
  return name;
}

async function removeClass({ client }: Scene, name: string): Promise<void> {
  await client.delete(workspaceClasses, { name }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
}

const memory = (quantity: string) => ({ limits: { resources: { memory: quantity } } });

async function limitOf(scene: WorkspaceScene, name: string): Promise<string | undefined> {
  const { spec } = await scene.statefulSet(name);
  return spec?.template.spec?.containers.find((each) => each.name === "pulumi")?.resources?.limits?.["memory"];
}

describe("a WorkspaceClass is rejected", () => {
  const selected = { namespaceSelector: {} };
  const bad: [string, unknown, string][] = [
    ["without a spec", undefined, "spec: is required"],
    ["without a selector", {}, "spec.namespaceSelector: Required value"],
    [
      "with values that do not match the operator",
      { namespaceSelector: { matchExpressions: [{ key: "a", operator: "Exists", values: ["b"] }] } },
      "set values for In and NotIn",
    ],
    [
      "with an unknown operator",
      { namespaceSelector: { matchExpressions: [{ key: "a", operator: "Is" }] } },
      "Unsupported value",
    ],
    ["with a limit for other resources", { ...selected, limits: { resources: { pods: 1 } } }, "use cpu, memory"],
    ["with a limit that is no quantity", { ...selected, limits: { resources: { cpu: "many" } } }, "should match"],
    [
      "with an unknown security profile",
      { ...selected, template: { spec: { securityProfile: "open" } } },
      "use restricted or baseline",
    ],
    ["with a program", { ...selected, template: { spec: { git: { url: "https://a/b" } } } }, "unknown field"],
    ["with a relative policy pack", { ...selected, policyPacks: [{ name: "a", path: "b" }] }, "should match"],
    ["with an unknown cache", { ...selected, caches: { size: "1Gi", tools: ["Maven"] } }, "Unsupported value"],
    ["with an unknown requirement", { ...selected, approval: { required: "Never" } }, "Unsupported value"],
    ["with a cache without a size", { ...selected, caches: {} }, "spec.caches.size: Required value"],
  ];
  for (const [what, wanted, message] of bad) {
    test(what, async () => {
      const { client } = await apiServerWithApi();
      const options = { dryRun: true, fieldValidation: "Strict" } as const;
      const rejected: unknown = await client
        .create(workspaceClasses, newClass("bad", wanted), options)
        .catch((error: unknown) => error);
      expect(String(rejected)).toContain(message);
      expect(isInvalid(rejected) || String(rejected).includes("unknown field")).toBe(true);
    });
  }
});

describe("a class gives a Stack", () => {
  test("defaults that its workspaceTemplate is merged over, with the next update", async () => {
    await using scene = await StackScene.open({ classes: true });
    const name = await classFor([scene], {
      template: { spec: { image: "default:1", env: [{ name: "A", value: "default" }] } },
    });
    await scene.program("program");
    await scene.stack("plain");
    await scene.stack("own", { workspaceTemplate: { spec: { image: "own:1" } } });
    await Promise.all([scene.isReady("plain"), scene.isReady("own")]);
    const specOf = async (stack: string) => (await scene.client.get(workspaces, scene.ref(stack))).spec;
    expect(await specOf("plain")).toMatchObject({ image: "default:1", env: [{ name: "A", value: "default" }] });
    expect(await specOf("own")).toMatchObject({ image: "own:1", env: [{ name: "A", value: "default" }] });

    const patch = { type: "merge", body: { spec: { template: { spec: { image: "default:2" } } } } } as const;
    await isStored(scene, await scene.client.patch(workspaceClasses, { name }, { patch }));
    await scene.fence();
    expect(await specOf("plain")).toMatchObject({ image: "default:1" });
    await scene.program("program", "two");
    await scene.isReady("plain", "2");
    expect(await specOf("plain")).toMatchObject({ image: "default:2" });

    await removeClass(scene, name);
    const { store } = scene.operator.stores.workspaceClasses.classes;
    await waitFor(() => store.get(name) === undefined, { what: "the store without the class" });
    await scene.program("program", "three");
    await scene.isReady("plain", "3");
    expect(await specOf("plain")).not.toHaveProperty("image");
  });

  test("a minimum of approvals, which the Stack cannot lower", async () => {
    await using scene = await StackScene.open({ classes: true });
    const name = await classFor([scene], { approval: { required: "Always" } });
    await scene.program("program");
    await scene.stack("web", { approval: { required: "Never" } });
    const waiting = await scene.becomes(
      "web",
      "awaiting an approval",
      (stack) => reasonOf(stack) === "AwaitingApproval",
    );
    expect(condition(waiting, "Reconciling")?.message).toContain(`because the WorkspaceClass ${name} requires it`);
    expect(scene.runs).toEqual(["preview@1"]);
    if (!waiting.status?.approval) throw new Error("there is no request");
    await decide(scene, waiting.status.approval);
    await scene.isReady("web", "1");
    expect(scene.runs).toEqual(["preview@1", "up@1"]);
  });

  test("nothing if two select its namespace: it is stalled until one does not", async () => {
    await using scene = await StackScene.open({ classes: true });
    const [first, second] = [await classFor([scene], {}), await classFor([scene], {})];
    await scene.program("program");
    await scene.stack("web");
    const stalled = await scene.becomes(
      "web",
      "stalled",
      (stack) => condition(stack, "Stalled")?.reason === "WorkspaceClassConflict",
    );
    for (const name of [first, second, scene.namespace]) {
      expect(condition(stalled, "Stalled")?.message).toContain(name);
    }
    expect(scene.runs).toEqual([]);
    await removeClass(scene, second);
    await scene.isReady("web");
  });

  test("what the labels of its namespace select, also when they change", async () => {
    await using scene = await StackScene.open({ classes: true });
    const label = uniqueName("team");
    const wanted = {
      namespaceSelector: { matchLabels: { [label]: "yes" } },
      template: { spec: { image: "default:1" } },
    };
    const name = uniqueName("class");
    await scene.client.create(workspaceClasses, newClass(name, wanted));
    scene.defer(() => removeClass(scene, name));
    await scene.program("program");
    await scene.stack("web");
    await scene.isReady("web");
    const patch = { type: "merge", body: { metadata: { labels: { [label]: "yes" } } } } as const;
    await scene.client.patch(builtin.namespaces, { name: scene.namespace }, { patch });
    await waitFor(
      () => scene.operator.stores.workspaceClasses.namespaces.store.get(scene.namespace)?.metadata.labels?.[label],
      { what: "the label in the store" },
    );
    await scene.program("program", "two");
    await scene.isReady("web", "2");
    expect((await scene.client.get(workspaces, scene.ref("web"))).spec?.image).toBe("default:1");
  });
});

describe("limits of a class", () => {
  test("bind a Workspace that a user creates", async () => {
    await using scene = await WorkspaceScene.open({}, { classes: true });
    await classFor([scene], memory("1Gi"));
    await scene.create("small", spec);
    await scene.becomes("small", "WaitingForReplicas");
    expect(await limitOf(scene, "small")).toBe("1Gi");
    await scene.create("large", { ...spec, resources: { limits: { memory: "2Gi" } } });
    const { status } = await scene.becomes("large", "WorkspaceClassLimitExceeded", "allows 1Gi");
    expect(status?.conditions?.map(({ type }) => type)).toEqual(["Ready", "Stalled"]);
    expect(await scene.client.find(builtin.statefulSets, scene.ref("large-workspace"))).toBeUndefined();
    await scene.events("WorkspaceClassLimitExceeded");
    await scene.change("large", { resources: { limits: { memory: "512Mi" } } });
    await scene.becomes("large", "WaitingForReplicas");
    expect(await limitOf(scene, "large")).toBe("512Mi");
  });

  test("leave the container pulumi exactly what its sidecars do not need, which the API server accepts", async () => {
    await using scene = await WorkspaceScene.open({}, { classes: true });
    await classFor([scene], { limits: { resources: { cpu: 1, memory: "1G" } } });
    const resources = { limits: { cpu: "900m", memory: "900M" } };
    const initContainers = [
      { name: "proxy", image: "proxy", restartPolicy: "Always", resources },
      { name: "tool", image: "tool", resources: { requests: { cpu: "100m", memory: "100M" } } },
    ];
    const requests = { memory: "100M" };
    await scene.create("web", { ...spec, resources: { requests }, podTemplate: { spec: { initContainers } } });
    await scene.becomes("web", "WaitingForReplicas");
    const pod = (await scene.statefulSet("web")).spec?.template.spec;
    const limits = [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])].map((each) => each.resources?.limits);
    const left = { cpu: "100m", memory: "100M" };
    expect(limits).toMatchObject([{ cpu: "1", memory: "1G" }, resources.limits, left, left]);
  });

  test("replace a pod when they change, but not while an Update runs in it", async () => {
    await using scene = await WorkspaceScene.open({}, { classes: true });
    const name = await classFor([scene], memory("1Gi"));
    await scene.ready("web", spec);
    const { metadata } = await scene.client.get(builtin.pods, scene.ref("web-workspace-0"));
    await scene.createUpdate("up", "web");
    await scene.setUpdate("up", { podUid: metadata.uid ?? "" });
    const patch = { type: "merge", body: { spec: memory("2Gi") } } as const;
    await scene.client.patch(workspaceClasses, { name }, { patch });
    await scene.reconciled("web");
    expect(await limitOf(scene, "web")).toBe("1Gi");
    await scene.setUpdate("up", complete);
    await waitFor(async () => (await limitOf(scene, "web")) === "2Gi", { what: "the new limit" });
  });

  test("end with the class, and so does its conflict with another", async () => {
    await using scene = await WorkspaceScene.open({}, { classes: true });
    const [first, second] = [await classFor([scene], memory("1Gi")), await classFor([scene], memory("2Gi"))];
    await scene.create("web", spec);
    await scene.becomes("web", "WorkspaceClassConflict", [first, second].toSorted().join(" and "));
    await removeClass(scene, first);
    await scene.becomes("web", "WaitingForReplicas");
    expect(await limitOf(scene, "web")).toBe("2Gi");
    await removeClass(scene, second);
    await waitFor(async () => (await limitOf(scene, "web")) === undefined, { what: "the pod without a limit" });
  });
});

describe("the claim of a class with caches", () => {
  const caches = { size: "1Gi", accessMode: "ReadWriteMany" } as const;
  const claimIn = async (scene: Scene, name: string): Promise<ApiObject<PersistentVolumeClaim>> =>
    await scene.client.get(builtin.persistentVolumeClaims, scene.ref(`pulumi-cache-${name}`));

  test("exists once in each namespace, belongs to the class, and stays when the class changes", async () => {
    await using one = await WorkspaceScene.open({}, { classes: true });
    await using two = await WorkspaceScene.open({}, { classes: true });
    const name = await classFor([one, two], { caches });
    for (const scene of [one, two]) {
      for (const workspace of ["a", "b"]) {
        await scene.create(workspace, spec);
        await scene.becomes(workspace, "WaitingForReplicas");
      }
    }
    const [first, second] = [await claimIn(one, name), await claimIn(two, name)];
    expect(first.metadata.uid).not.toBe(second.metadata.uid);
    const { metadata } = await one.client.get(workspaceClasses, { name });
    for (const { metadata: claim, spec: wanted } of [first, second]) {
      expect(claim.ownerReferences).toMatchObject([{ kind: "WorkspaceClass", uid: metadata.uid, controller: true }]);
      expect(wanted).toMatchObject({ accessModes: ["ReadWriteMany"], resources: { requests: { storage: "1Gi" } } });
    }
    const volumes = (await one.statefulSet("a")).spec?.template.spec?.volumes;
    expect(volumes).toContainEqual({
      name: "pulumi-cache",
      persistentVolumeClaim: { claimName: `pulumi-cache-${name}` },
    });

    const patch = { type: "merge", body: { spec: { caches: { size: "2Gi", tools: ["Npm"] } } } } as const;
    await one.client.patch(workspaceClasses, { name }, { patch });
    await waitFor(async () => !JSON.stringify((await one.statefulSet("a")).spec?.template).includes("--plugin-cache"), {
      what: "the changed caches",
    });
    const after = await claimIn(one, name);
    expect(after.metadata.uid).toBe(first.metadata.uid as string);
    expect(after.spec?.resources?.requests?.["storage"]).toBe("1Gi");
  });

  test("is not taken over if its name belongs to another owner", async () => {
    await using scene = await WorkspaceScene.open({}, { classes: true });
    const name = uniqueName("class");
    const metadata = scene.ref(`pulumi-cache-${name}`);
    const resources = { requests: { storage: "1Gi" } };
    await scene.client.create(builtin.persistentVolumeClaims, {
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata,
      spec: { accessModes: ["ReadWriteOnce"], resources },
    });
    await classFor([scene], { caches }, name);
    await scene.create("web", spec);
    await scene.becomes("web", "OwnershipConflict", `PersistentVolumeClaim ${scene.namespace}/pulumi-cache-${name}`);
  });
});

test("without the permissions in the whole cluster, classes are off, and that is logged", async () => {
  await using scene = await WorkspaceScene.open();
  await using account = await operatorAccount({
    admin: (await apiServerWithApi()).credentials,
    home: scene.namespace,
    namespaces: [scene.namespace],
    withoutClasses: true,
  });
  let text = "";
  const log = logger({ format: "json", write: (line) => void (text += line) });
  expect(await classReflectors(connect(account.credentials), {}, log)).toBeUndefined();
  expect(text).toContain("WorkspaceClasses are off");
  expect(text).toContain("list workspaceclasses");
  expect(await classReflectors(scene.rights.client, {}, log)).toBeDefined();
});
