/** Updates in the Workspace of a Stack that requires approvals: what they may apply, and how often. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { planSecretNameOf, stackKind, type StackSpec, type Update, type UpdateSpec } from "@pko/api";
import { builtin } from "@pko/kube";
import { approvals, stacks } from "@pko/operator";
import { faultProxy, fullQuota, waitFor } from "@pko/testkit";

import { decide } from "../approvals/decide.ts";
import { controllerOf } from "../workspace/harness.ts";
import type { FakeAgent } from "./fake-agent.ts";
import { conditionsOf, crashingClient, workspaces, World } from "./harness.ts";

setDefaultTimeout(60_000);

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
  world: World,
  approval: StackSpec["approval"] = { required: "Always" },
): Promise<FakeAgent> {
  const { apiVersion, kind } = stackKind;
  const spec = { stack: "dev", programRef: { name: "program" }, ...(approval && { approval }) };
  const stack = await world.client.create(stacks, { apiVersion, kind, metadata: world.ref("web"), spec });
  const agent = await world.workspace("web");
  const body = { metadata: { ownerReferences: [controllerOf(stacks, stack)] } };
  await world.client.patch(workspaces, world.ref("web"), { patch: { type: "merge", body } });
  agent.plan = sealed;
  return agent;
}

const runStarted = async (agent: FakeAgent, uid: string): Promise<void> => {
  await waitFor(() => agent.started.includes(uid), { timeoutMs: 20_000, what: "the run to start" });
};

const place = (world: World) => ({ client: world.client, namespace: world.namespace.name });

/** Makes a plan, and returns what identifies it. */
async function makePlan(world: World, agent: FakeAgent) {
  const updateUid = await world.update("web-plan", { type: "preview", savePlan: true });
  await runStarted(agent, updateUid);
  const finishedAt = new Date().toISOString();
  agent.finish(updateUid, { plan: summary, finishedAt, changes: { delete: 1 } });
  await world.until("web-plan", succeeded);
  return { updateName: "web-plan", updateUid, digest: sealed.digest };
}

interface Setting extends AsyncDisposable {
  readonly world: World;
  readonly agent: FakeAgent;
  readonly plan: Awaited<ReturnType<typeof makePlan>>;
}

async function setting(): Promise<Setting> {
  const world = await World.create();
  const agent = await stackWorkspace(world);
  const operator = world.operator();
  const plan = await makePlan(world, agent);
  await operator.stop();
  return { world, agent, plan, [Symbol.asyncDispose]: () => world[Symbol.asyncDispose]() };
}

const messageOf = (update: Update | undefined): string => update?.status?.message ?? "";

describe("an Update that makes a plan", () => {
  test("stores it, unchanged, in Secrets that it owns", async () => {
    await using given = await setting();
    const { world, plan } = given;
    const update = await world.find("web-plan");
    expect(update?.status?.plan).toEqual({ ...summary, secretNames: [planSecretNameOf("web-plan", 0)] });
    const secret = await world.secret(planSecretNameOf("web-plan", 0));
    expect(Buffer.from(secret?.data?.["plan"] ?? "", "base64").toString()).toBe(sealed.content);
    expect(secret).toMatchObject({ immutable: true, metadata: { ownerReferences: [{ uid: plan.updateUid }] } });
  });

  test("fails if the plan cannot be stored", async () => {
    await using world = await World.create();
    const agent = await stackWorkspace(world);
    world.operator();
    const uid = await world.update("web-plan", { type: "preview", savePlan: true });
    await runStarted(agent, uid);
    const { client } = world;
    const probe = () =>
      client.create(
        builtin.secrets,
        { apiVersion: "v1", kind: "Secret", metadata: world.ref("probe") },
        { dryRun: true },
      );
    await using _ = await fullQuota({ client, namespace: world.namespace.name, counted: "count/secrets", probe });
    world.rights.expectForbidden(/exceeded quota/);
    agent.finish(uid, { plan: summary });
    const update = await world.until("web-plan", { Failed: "True/UpdateFailed" });
    expect(messageOf(update)).toContain("its plan could not be kept");
    expect(messageOf(update)).toContain("exceeded quota");
    expect(update.status?.plan).toBeUndefined();
  });
});

describe("an Update that applies an approved plan", () => {
  const applying = ({ plan }: Setting, more: UpdateSpec = {}): UpdateSpec => ({
    applyPlan: { ...plan, approvalName: "yes" },
    ...more,
  });

  test("uses the Approval, and passes the plan on unchanged", async () => {
    await using given = await setting();
    const { world, agent, plan } = given;
    await decide(place(world), plan, { name: "yes" });
    world.operator();
    const uid = await world.update("web-1", applying(given));
    await runStarted(agent, uid);
    expect(agent.requestOf(uid).operation).toEqual({ kind: "up", applyPlan: sealed });
    const { status } = await world.client.get(approvals, world.ref("yes"));
    expect(status?.usedBy).toMatchObject({ updateName: "web-1", updateUid: uid });
    agent.finish(uid);
    await world.until("web-1", succeeded);
  });

  test("is refused if another Update has used the Approval", async () => {
    await using given = await setting();
    const { world, agent, plan } = given;
    await decide(place(world), plan, { name: "yes" });
    world.operator();
    const uids = await Promise.all(["web-1", "web-2"].map((name) => world.update(name, applying(given))));
    await waitFor(() => agent.started.length === 2, { what: "one of them to start" });
    const [used = ""] = agent.started.slice(1);
    agent.finish(used);
    await waitFor(async () => {
      const both = await Promise.all(["web-1", "web-2"].map((name) => world.find(name)));
      return both.every((update) => conditionsOf(update)["Complete"]?.startsWith("True"));
    });
    expect(agent.started.filter((uid) => uids.includes(uid))).toEqual([used]);
    const refused = await world.find(used === uids[0] ? "web-2" : "web-1");
    expect(messageOf(refused)).toContain("was already applied by Update");
  });

  test("passes on the digest that was approved, though the Secret was replaced: the agent compares them", async () => {
    await using given = await setting();
    const { world, agent, plan } = given;
    await decide(place(world), plan, { name: "yes" });
    const ref = world.ref(planSecretNameOf("web-plan", 0));
    const { metadata } = await world.client.get(builtin.secrets, ref);
    await world.client.delete(builtin.secrets, ref);
    await world.client.create(builtin.secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { ...ref, ownerReferences: metadata.ownerReferences ?? [] },
      stringData: { plan: "tampered" },
    });
    world.operator();
    const uid = await world.update("web-1", applying(given));
    await runStarted(agent, uid);
    const applyPlan = { digest: sealed.digest, content: "tampered" };
    expect(agent.requestOf(uid).operation).toEqual({ kind: "up", applyPlan });
  });

  test("fails if the Secret with the plan has another owner", async () => {
    await using given = await setting();
    const { world, agent, plan } = given;
    await decide(place(world), plan, { name: "yes" });
    const ref = world.ref(planSecretNameOf("web-plan", 0));
    const body = { metadata: { ownerReferences: null } };
    await world.client.patch(builtin.secrets, ref, { patch: { type: "merge", body } });
    world.operator();
    await world.update("web-1", applying(given));
    expect(messageOf(await world.until("web-1", failed))).toContain("does not belong to Update web-plan");
    expect(agent.started).toEqual([plan.updateUid]);
  });

  test("does not start if the plan was rejected, though its store does not show that", async () => {
    await using given = await setting();
    const { world, agent, plan } = given;
    await decide(place(world), plan, { name: "yes" });
    await using proxy = await faultProxy(world.rights.credentials);
    const isWatching = proxy.nextRequest(({ verb, resource }) => verb === "watch" && resource === "approvals");
    proxy.onEvent(async (_, { resource }) => (resource === "approvals" ? "drop" : "pass"));
    const behind = world.rights.connect(proxy.credentials);
    world.operator(behind, undefined, behind);
    await isWatching;
    await decide(place(world), plan, { name: "no", decision: "Reject" });
    await world.update("web-1", applying(given));
    const lists = () =>
      proxy.requests.filter(({ verb, resource }) => verb === "list" && resource === "approvals").length;
    // The first one fills the store.
    await waitFor(() => lists() > 1, { timeoutMs: 20_000, what: "the Approvals to be confirmed" });
    expect(agent.started).toEqual([plan.updateUid]);
    expect((await world.client.get(approvals, world.ref("yes"))).status?.usedBy).toBeUndefined();
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

  async function crashAt(nth: number, when: "before" | "after"): Promise<boolean> {
    await using given = await setting();
    const { world, agent, plan } = given;
    await decide(place(world), plan, { name: "yes" });
    const crashing = crashingClient(world.rights.client, nth, when);
    const first = world.operator(crashing.client);
    const uid = await world.update("web-1", applying(given));
    const over = (async () => {
      await runStarted(agent, uid);
      agent.finish(uid);
      await world.until("web-1", succeeded);
    })();
    const hasCrashed = await Promise.race([crashing.crashed.then(() => true), over.then(() => false)]);
    if (hasCrashed) {
      await first.stop();
      world.operator();
    }
    await over;
    expect(agent.started).toEqual([plan.updateUid, uid]);
    expect((await world.client.get(approvals, world.ref("yes"))).status?.usedBy?.updateUid).toBe(uid);
    return hasCrashed;
  }
});

describe("an Update of a user", () => {
  for (const type of ["up", "destroy"] as const) {
    test(`of the type ${type} is refused without a plan`, async () => {
      await using world = await World.create();
      const agent = await stackWorkspace(world);
      world.operator();
      await world.update("mine", { type });
      expect(messageOf(await world.until("mine", failed))).toContain("Stack web requires approvals");
      expect(agent.started).toEqual([]);
    });
  }

  test("of the type refresh runs, because it changes no resource", async () => {
    await using world = await World.create();
    const agent = await stackWorkspace(world);
    world.operator();
    await runStarted(agent, await world.update("mine", { type: "refresh" }));
  });

  test("is refused if the plan was not approved", async () => {
    await using given = await setting();
    const { world, agent, plan } = given;
    world.operator();
    await world.update("mine", { applyPlan: plan });
    expect(messageOf(await world.until("mine", failed))).toContain("has not been approved");
    expect(agent.started).toEqual([plan.updateUid]);
  });

  test("runs in a Workspace whose Stack requires no approvals", async () => {
    await using world = await World.create();
    const agent = await stackWorkspace(world, { required: "Never" });
    world.operator();
    await runStarted(agent, await world.update("mine"));
  });
});
