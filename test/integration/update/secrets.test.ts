/** The Secrets of an Update: created once, and never in the place of another owner's. */
import { describe, expect, test } from "bun:test";
import { updateKind } from "@pko/api";
import { builtin, type ApiObject } from "@pko/kube";
import type { RunResult } from "@pko/rpc";
import { waitFor } from "@pko/testkit";
import type { Secret } from "kubernetes-types/core/v1";
import type { OwnerReference } from "kubernetes-types/meta/v1";

import { updates, UpdateScene } from "./scene.ts";

const succeeded = { Complete: "True/Updated" };
const longOutput = { tail: "x".repeat(20_000), bytes: 20_000, truncated: false };

/** A scene in which an Update has started. */
async function startedWorld(
  type = "up",
): Promise<{ scene: UpdateScene; uid: string; finish: (result: Partial<RunResult>) => void }> {
  const scene = await UpdateScene.open();
  const agent = await scene.workspace("web");
  agent.outputs.push({ name: "url", value: "http://x", secret: false, known: true });
  scene.operator();
  const uid = await scene.update("web-1", { type });
  await waitFor(() => agent.started.includes(uid), { what: "the run to start" });
  return { scene, uid, finish: (result) => agent.finish(uid, result) };
}

async function secretOf(
  scene: UpdateScene,
  name: string,
  ownerReferences: OwnerReference[] = [],
): Promise<ApiObject<Secret>> {
  const metadata = { ...scene.ref(name), ownerReferences };
  return await scene.client.create(builtin.secrets, {
    apiVersion: "v1",
    kind: "Secret",
    metadata,
    data: { a: "eA==" },
  });
}

const reference = (uid: string, controller = true): OwnerReference => ({
  apiVersion: updateKind.apiVersion,
  kind: updateKind.kind,
  name: "web-1",
  uid,
  controller,
});

const earlier = reference("the-uid-of-an-earlier-one");
const reused: OwnerReference = { ...reference("the-uid-of-another-one", false), name: "web-0" };
const beside: OwnerReference = { apiVersion: "v1", kind: "ConfigMap", name: "theirs", uid: "another-uid" };

test("Secrets of another owner are not changed; the Update ends nevertheless, and names them", async () => {
  const { scene, finish } = await startedWorld("preview");
  await using _ = scene;
  const names = ["web-1-stack-outputs", "web-1-stdout"];
  const before = [];
  for (const name of names) before.push(await secretOf(scene, name));
  finish({ output: longOutput });
  const { status } = await scene.until("web-1", succeeded);
  for (const name of names) {
    const text = `Secret ${scene.namespace}/${name} (without an owner) already exists`;
    expect(status?.message).toContain(text);
  }
  expect(await Promise.all(names.map((name) => scene.secret(name)))).toEqual(before);
  expect(status?.stdout?.secretName).toBeUndefined();
});

test("Secrets of an earlier Update of the same name are replaced", async () => {
  const { scene, uid, finish } = await startedWorld();
  await using _ = scene;
  await secretOf(scene, "web-1-stack-outputs", [earlier]);
  finish({});
  await scene.until("web-1", succeeded);
  const secret = await scene.secret("web-1-stack-outputs");
  expect(secret?.metadata.ownerReferences).toMatchObject([{ uid, controller: true }]);
  expect(Object.keys(secret?.data ?? {})).toEqual(["url"]);
});

test("Secrets of an earlier Update with another owner are not replaced", async () => {
  const { scene, finish } = await startedWorld();
  await using _ = scene;
  const before = await secretOf(scene, "web-1-stack-outputs", [earlier, beside]);
  finish({});
  const { status } = await scene.until("web-1", succeeded);
  expect(status?.message).toContain("The Secret web-1-stack-outputs could not be created");
  expect(await scene.secret("web-1-stack-outputs")).toEqual(before);
});

test.each([
  ["only another Update, which reused it,", [reused]],
  ["an earlier Update and another one, which reused it,", [earlier, reused]],
])("if the Secret with the name of the outputs belongs to %s they get another name", async (_, owners) => {
  const { scene, uid, finish } = await startedWorld();
  await using _scene = scene;
  const before = await secretOf(scene, "web-1-stack-outputs", owners);
  finish({});
  const { status } = await scene.until("web-1", succeeded);
  expect(status?.message).toBeUndefined();
  expect(status?.outputs).toBe(`web-1-${uid.slice(0, 8)}-stack-outputs`);
  const secret = await scene.secret(status?.outputs ?? "");
  expect(secret?.metadata.ownerReferences).toMatchObject([{ uid, controller: true }]);
  expect(Object.keys(secret?.data ?? {})).toEqual(["url"]);
  expect(await scene.secret("web-1-stack-outputs")).toEqual(before);
});

test("a Secret that the Go operator created for the same Update is kept", async () => {
  const { scene, uid, finish } = await startedWorld();
  await using _ = scene;
  const before = await secretOf(scene, "web-1-stack-outputs", [reference(uid, false)]);
  finish({});
  const { status } = await scene.until("web-1", succeeded);
  expect(status?.message).toBeUndefined();
  expect(status?.outputs).toBe("web-1-stack-outputs");
  expect(await scene.secret("web-1-stack-outputs")).toEqual(before);
});

describe("a second Update", () => {
  /** Runs an Update with this output, and returns its UID. */
  async function complete(scene: UpdateScene, name: string, value: string): Promise<string> {
    const [agent] = scene.agents;
    agent?.outputs.splice(0, agent.outputs.length, { name: "url", value, secret: false, known: true });
    const uid = await scene.update(name, { type: "up" });
    await waitFor(() => agent?.started.includes(uid), { what: "the run to start" });
    agent?.finish(uid, {});
    await scene.until(name, succeeded);
    return uid;
  }

  async function bothEnd(secondUrl: string) {
    const scene = await UpdateScene.open();
    await scene.workspace("web");
    scene.operator();
    const uids = [await complete(scene, "web-1", "http://x"), await complete(scene, "web-2", secondUrl)];
    return { scene, uids };
  }

  test("with the same outputs uses the Secret of the first, and owns it, too", async () => {
    const { scene, uids } = await bothEnd("http://x");
    await using _ = scene;
    const { status } = await scene.until("web-2", succeeded);
    expect(status?.outputs).toBe("web-1-stack-outputs");
    expect(await scene.secret("web-2-stack-outputs")).toBeUndefined();
    const { metadata } = (await scene.secret("web-1-stack-outputs")) ?? {};
    const [first, second] = uids;
    expect(metadata?.ownerReferences).toMatchObject([
      { uid: first, controller: true },
      { uid: second, name: "web-2", controller: false, blockOwnerDeletion: false },
    ]);
  });

  test.each(["changes at the same time", "has been changed by a request whose response was lost"])(
    "uses the Secret of the first even if it %s",
    async (when) => {
      const scene = await UpdateScene.open();
      await using _ = scene;
      const { proxy, client } = await scene.proxy();
      await scene.workspace("web");
      scene.operator({ client });
      await complete(scene, "web-1", "http://x");
      let faults = 0;
      proxy.on(({ verb, resource }) => {
        if (verb !== "patch" || resource !== "secrets" || faults > 0) return undefined;
        faults += 1;
        return when.startsWith("changes") ? { status: 409 } : { cut: "after" };
      });
      await complete(scene, "web-2", "http://x");
      expect(faults).toBe(1);
      expect((await scene.until("web-2", succeeded)).status?.outputs).toBe("web-1-stack-outputs");
      const { metadata } = (await scene.secret("web-1-stack-outputs")) ?? {};
      expect(metadata?.ownerReferences).toMatchObject([{ name: "web-1" }, { name: "web-2" }]);
    },
  );

  test("keeps the Secret of the first when that one is deleted", async () => {
    const { scene, uids } = await bothEnd("http://x");
    await using _ = scene;
    await scene.client.delete(updates, scene.ref("web-1"));
    await waitFor(async () => (await scene.find("web-1")) === undefined, { what: "the first Update to be deleted" });
    const before = await scene.secret("web-1-stack-outputs");
    // No garbage collector runs here. It removes the references of deleted owners while another owner exists.
    const ownerReferences = before?.metadata.ownerReferences?.filter(({ uid }) => uid !== uids[0]) ?? [];
    expect(ownerReferences).toMatchObject([{ name: "web-2", uid: uids[1] }]);
    const patch = { type: "merge", body: { metadata: { ownerReferences } } } as const;
    await scene.client.patch(builtin.secrets, scene.ref("web-1-stack-outputs"), { patch });

    await complete(scene, "web-3", "http://x");
    expect((await scene.until("web-3", succeeded)).status?.outputs).toBe("web-1-stack-outputs");
    const { metadata, data } = (await scene.secret("web-1-stack-outputs")) ?? {};
    expect(metadata?.ownerReferences).toMatchObject([{ name: "web-2" }, { name: "web-3" }]);
    expect(data).toEqual(before?.data);
  });

  test("with other outputs has its own Secret", async () => {
    const { scene, uids } = await bothEnd("http://y");
    await using _ = scene;
    const { status } = await scene.until("web-2", succeeded);
    expect(status?.outputs).toBe("web-2-stack-outputs");
    const secret = await scene.secret("web-2-stack-outputs");
    expect(secret?.metadata.ownerReferences).toMatchObject([{ uid: uids[1], controller: true }]);
  });
});
