/** Updates in the Workspace of a Stack that requires approvals: what they may apply, and how often. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { planSecretNameOf, stackKind, type StackSpec, type Update, type UpdateSpec } from "@pko/api";
import { builtin, type Client } from "@pko/kube";
import { approvals, stacks, updates, workspaceClasses } from "@pko/operator";
import { faultProxy, fullQuota, waitFor } from "@pko/testkit";

import { decide } from "../approvals/decide.ts";
import { controllerOf } from "../harness/pods.ts";
import type { FakeAgent } from "./fake-agent.ts";
import { conditionsOf, crashingClient, workspaces, UpdateScene } from "./scene.ts";

setDefaultTimeout(180_000);

const sealed = { digest: "sha256:plan", content: "c2VhbGVk".repeat(100) };
const summary = {
  digest: sealed.digest,
  changes: true,
  destructive: true,
  unknownInputs: 1,
  summary: "- delete bucket",
};
const failed = { Complete: "True/Failed" };
const succeeded = { Complete: "True/Updated" };

async function stackWorkspace(
  scene: UpdateScene,
  approval: StackSpec["approval"] = { required: "Always" },
): Promise<FakeAgent> {
  const { apiVersion, kind } = stackKind;
  const spec = { stack: "dev", programRef: { name: "program" }, ...(approval && { approval }) };
  const stack = await scene.client.create(stacks, { apiVersion, kind, metadata: scene.ref("web"), spec });
  const agent = await scene.workspace("web");
  const body = { metadata: { ownerReferences: [controllerOf(stacks, stack)] } };
  await scene.client.patch(workspaces, scene.ref("web"), { patch: { type: "merge", body } });
  agent.plan = sealed;
  return agent;
}

const runStarted = async (agent: FakeAgent, uid: string): Promise<void> => {
  await waitFor(() => agent.started.includes(uid), { timeoutMs: 45_000, what: "the run to start" });
};

const place = (scene: UpdateScene) => ({ client: scene.client, namespace: scene.namespace });

/** Makes a plan, and returns what identifies it. */
async function makePlan(scene: UpdateScene, agent: FakeAgent) {
  const updateUid = await scene.update("web-plan", { type: "preview", savePlan: true });
  await runStarted(agent, updateUid);
  const finishedAt = new Date().toISOString();
  agent.finish(updateUid, { plan: summary, finishedAt, changes: { delete: 1 } });
  await scene.until("web-plan", succeeded);
  return { updateName: "web-plan", updateUid, digest: sealed.digest };
}

interface Setting extends AsyncDisposable {
  readonly scene: UpdateScene;
  readonly agent: FakeAgent;
  readonly plan: Awaited<ReturnType<typeof makePlan>>;
}

async function setting(): Promise<Setting> {
  const scene = await UpdateScene.open();
  const agent = await stackWorkspace(scene);
  const operator = scene.operator();
  const plan = await makePlan(scene, agent);
  await operator.stop();
  return { scene, agent, plan, [Symbol.asyncDispose]: () => scene[Symbol.asyncDispose]() };
}

const messageOf = (update: Update | undefined): string => update?.status?.message ?? "";

describe("an Update that makes a plan", () => {
  test("stores it, unchanged, in Secrets that it owns", async () => {
    await using given = await setting();
    const { scene, plan } = given;
    const update = await scene.find("web-plan");
    expect(update?.status?.plan).toEqual({ ...summary, secretNames: [planSecretNameOf("web-plan", 0)] });
    const secret = await scene.secret(planSecretNameOf("web-plan", 0));
    expect(Buffer.from(secret?.data?.["plan"] ?? "", "base64").toString()).toBe(sealed.content);
    expect(secret).toMatchObject({ immutable: true, metadata: { ownerReferences: [{ uid: plan.updateUid }] } });
  });

  test("fails if the plan cannot be stored", async () => {
    await using scene = await UpdateScene.open();
    const agent = await stackWorkspace(scene);
    scene.operator();
    const uid = await scene.update("web-plan", { type: "preview", savePlan: true });
    await runStarted(agent, uid);
    const { client } = scene;
    const probe = () =>
      client.create(
        builtin.secrets,
        { apiVersion: "v1", kind: "Secret", metadata: scene.ref("probe") },
        { dryRun: true },
      );
    await using _ = await fullQuota({ client, namespace: scene.namespace, counted: "count/secrets", probe });
    scene.rights.expectForbidden(/exceeded quota/);
    agent.finish(uid, { plan: summary });
    const update = await scene.until("web-plan", { Failed: "True/UpdateFailed" });
    expect(messageOf(update)).toContain("its plan could not be kept");
    expect(messageOf(update)).toContain("exceeded quota");
    expect(update.status?.plan).toBeUndefined();
  });
});

test("an Update without a plan is refused if only the WorkspaceClass requires approvals", async () => {
  await using scene = await UpdateScene.open();
  const { apiVersion, kind } = workspaceClasses;
  const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": scene.namespace } };
  const name = `class-${scene.namespace}`;
  const spec = { namespaceSelector, approval: { required: "Always" } } as const;
  await scene.client.create(workspaceClasses, { apiVersion, kind, metadata: { name }, spec });
  scene.defer(() => scene.client.delete(workspaceClasses, { name }));
  const agent = await stackWorkspace(scene, { required: "Never" });
  scene.operator({ classes: true });
  await scene.update("sneaky", { type: "up" });
  expect(messageOf(await scene.until("sneaky", failed))).toContain("requires approvals");
  expect(agent.started).toEqual([]);
});

describe("an Update that applies an approved plan", () => {
  const applying = ({ plan }: Setting, more: UpdateSpec = {}): UpdateSpec => ({
    applyPlan: { ...plan, approvalName: "yes" },
    ...more,
  });

  test("uses the Approval, and passes the plan on unchanged", async () => {
    await using given = await setting();
    const { scene, agent, plan } = given;
    await decide(place(scene), plan, { name: "yes" });
    scene.operator();
    const uid = await scene.update("web-1", applying(given));
    await runStarted(agent, uid);
    expect(agent.requestOf(uid).operation).toEqual({ kind: "up", applyPlan: sealed });
    const { status } = await scene.client.get(approvals, scene.ref("yes"));
    expect(status?.usedBy).toMatchObject({ updateName: "web-1", updateUid: uid });
    agent.finish(uid);
    await scene.until("web-1", succeeded);
  });

  test("is refused if another Update has used the Approval", async () => {
    await using given = await setting();
    const { scene, agent, plan } = given;
    await decide(place(scene), plan, { name: "yes" });
    scene.operator();
    const uids = await Promise.all(["web-1", "web-2"].map((name) => scene.update(name, applying(given))));
    await waitFor(() => agent.started.length === 2, { what: "one of them to start" });
    const [used = ""] = agent.started.slice(1);
    agent.finish(used);
    await waitFor(async () => {
      const both = await Promise.all(["web-1", "web-2"].map((name) => scene.find(name)));
      return both.every((update) => conditionsOf(update)["Complete"]?.startsWith("True"));
    });
    expect(agent.started.filter((uid) => uids.includes(uid))).toEqual([used]);
    const refused = await scene.find(used === uids[0] ? "web-2" : "web-1");
    expect(messageOf(refused)).toContain("which Update");
  });

  test("passes on the digest that was approved, though the Secret was replaced: the agent compares them", async () => {
    await using given = await setting();
    const { scene, agent, plan } = given;
    await decide(place(scene), plan, { name: "yes" });
    const ref = scene.ref(planSecretNameOf("web-plan", 0));
    const { metadata } = await scene.client.get(builtin.secrets, ref);
    await scene.client.delete(builtin.secrets, ref);
    await scene.client.create(builtin.secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { ...ref, ownerReferences: metadata.ownerReferences ?? [] },
      stringData: { plan: "tampered" },
    });
    scene.operator();
    const uid = await scene.update("web-1", applying(given));
    await runStarted(agent, uid);
    const applyPlan = { digest: sealed.digest, content: "tampered" };
    expect(agent.requestOf(uid).operation).toEqual({ kind: "up", applyPlan });
  });

  test("fails if the Secret with the plan has another owner", async () => {
    await using given = await setting();
    const { scene, agent, plan } = given;
    await decide(place(scene), plan, { name: "yes" });
    const ref = scene.ref(planSecretNameOf("web-plan", 0));
    const body = { metadata: { ownerReferences: null } };
    await scene.client.patch(builtin.secrets, ref, { patch: { type: "merge", body } });
    scene.operator();
    await scene.update("web-1", applying(given));
    expect(messageOf(await scene.until("web-1", failed))).toContain("does not belong to Update web-plan");
    expect(agent.started).toEqual([plan.updateUid]);
  });

  test("does not start if the plan was rejected, though its store does not show that", async () => {
    await using given = await setting();
    const { scene, agent, plan } = given;
    await decide(place(scene), plan, { name: "yes" });
    await using proxy = await faultProxy(scene.rights.credentials);
    const isWatching = proxy.nextRequest(({ verb, resource }) => verb === "watch" && resource === "approvals");
    proxy.onEvent(async (_, { resource }) => (resource === "approvals" ? "drop" : "pass"));
    const behind = scene.rights.connect(proxy.credentials);
    scene.operator({ client: behind, reading: behind });
    await isWatching;
    await decide(place(scene), plan, { name: "no", decision: "Reject" });
    await scene.update("web-1", applying(given));
    const lists = () =>
      proxy.requests.filter(({ verb, resource }) => verb === "list" && resource === "approvals").length;
    // The first one fills the store.
    await waitFor(() => lists() > 1, { timeoutMs: 45_000, what: "the Approvals to be confirmed" });
    expect(agent.started).toEqual([plan.updateUid]);
    expect((await scene.client.get(approvals, scene.ref("yes"))).status?.usedBy).toBeUndefined();
  });

  test("starts once, and uses its Approval itself, wherever the operator crashes", async () => {
    let crashes = 0;
    for (let nth = 1; nth < 20; nth++) {
      const ends = await Promise.all((["before", "after"] as const).map((when) => crashAt(nth, when)));
      crashes += ends.filter(Boolean).length;
      if (!ends.some(Boolean)) break;
    }
    // The finalizer, the Approval, the pod and the result.
    expect(crashes).toBeGreaterThan(7);
  }, 240_000);

  test("can be withdrawn before it starts, and another one uses the same Approval", async () => {
    await using given = await setting();
    const { scene, agent, plan } = given;
    await decide(place(scene), plan, { name: "yes" });
    const first = scene.operator({ client: crashingAfterUse(scene) });
    await scene.update("web-1", applying(given));
    const isUsed = async () => (await scene.client.get(approvals, scene.ref("yes"))).status?.usedBy;
    expect(await waitFor(isUsed, { timeoutMs: 45_000, what: "the Approval to be used" })).toMatchObject({
      updateName: "web-1",
    });
    await first.stop();
    await scene.client.delete(updates, scene.ref("web-1"));
    scene.operator();
    await waitFor(async () => (await scene.find("web-1")) === undefined, { what: "the Update to be deleted" });
    expect(await isUsed()).toBeUndefined();
    const uid = await scene.update("web-2", applying(given));
    await runStarted(agent, uid);
    expect(agent.started).toEqual([plan.updateUid, uid]);
    expect(await isUsed()).toMatchObject({ updateUid: uid });
  });

  test("keeps its Approval used if it is deleted while it runs", async () => {
    await using given = await setting();
    const { scene, agent, plan } = given;
    await decide(place(scene), plan, { name: "yes" });
    scene.operator();
    const uid = await scene.update("web-1", applying(given));
    await runStarted(agent, uid);
    await scene.client.delete(updates, scene.ref("web-1"));
    await waitFor(() => agent.isCancelled(uid), { what: "the run to be cancelled" });
    agent.finish(uid, { outcome: "cancelled" });
    await waitFor(async () => (await scene.find("web-1")) === undefined, { what: "the Update to be deleted" });
    expect((await scene.client.get(approvals, scene.ref("yes"))).status?.usedBy?.updateUid).toBe(uid);
  });

  /** Its writes fail after the Approval was marked. */
  function crashingAfterUse({ rights: { client } }: UpdateScene): Client {
    let isCrashed = false;
    const crash = async () => await Promise.reject(new Error("the process has crashed"));
    return {
      ...client,
      get: (resource, ref, options) => client.get(resource, ref, options),
      find: (resource, ref, options) => client.find(resource, ref, options),
      apply: (resource, body, options) => (isCrashed ? crash() : client.apply(resource, body, options)),
      async patch(resource, ref, change) {
        if (isCrashed) return await crash();
        isCrashed = resource.plural === approvals.plural;
        return await client.patch(resource, ref, change);
      },
    };
  }

  async function crashAt(nth: number, when: "before" | "after"): Promise<boolean> {
    await using given = await setting();
    const { scene, agent, plan } = given;
    await decide(place(scene), plan, { name: "yes" });
    const crashing = crashingClient(scene.rights.client, nth, when);
    const first = scene.operator({ client: crashing.client });
    const uid = await scene.update("web-1", applying(given));
    const over = (async () => {
      await runStarted(agent, uid);
      agent.finish(uid);
      await scene.until("web-1", succeeded);
    })();
    const hasCrashed = await Promise.race([crashing.crashed.then(() => true), over.then(() => false)]);
    if (hasCrashed) {
      await first.stop();
      scene.operator();
    }
    await over;
    expect(agent.started).toEqual([plan.updateUid, uid]);
    expect((await scene.client.get(approvals, scene.ref("yes"))).status?.usedBy?.updateUid).toBe(uid);
    return hasCrashed;
  }
});

describe("an Update of a user", () => {
  for (const type of ["up", "destroy"] as const) {
    test(`of the type ${type} is refused without a plan`, async () => {
      await using scene = await UpdateScene.open();
      const agent = await stackWorkspace(scene);
      scene.operator();
      await scene.update("mine", { type });
      expect(messageOf(await scene.until("mine", failed))).toContain("Stack web requires approvals");
      expect(agent.started).toEqual([]);
    });
  }

  test("of the type refresh runs, because it changes no resource", async () => {
    await using scene = await UpdateScene.open();
    const agent = await stackWorkspace(scene);
    scene.operator();
    await runStarted(agent, await scene.update("mine", { type: "refresh" }));
  });

  test("is refused if the plan was not approved", async () => {
    await using given = await setting();
    const { scene, agent, plan } = given;
    scene.operator();
    await scene.update("mine", { applyPlan: plan });
    expect(messageOf(await scene.until("mine", failed))).toContain("has not been approved");
    expect(agent.started).toEqual([plan.updateUid]);
  });

  test("runs in a Workspace whose Stack requires no approvals", async () => {
    await using scene = await UpdateScene.open();
    const agent = await stackWorkspace(scene, { required: "Never" });
    scene.operator();
    await runStarted(agent, await scene.update("mine"));
  });
});
