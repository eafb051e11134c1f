/** Old Updates are deleted as the history limits say, and nothing else is. */
import { expect, test } from "bun:test";
import { stackKind, triggerAnnotation, updateKind, type Update } from "@pko/api";
import { updates } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { StackScene, testTimeoutMs } from "./scene.ts";

async function namesOf(scene: StackScene): Promise<string[]> {
  const { items } = await scene.client.list(updates, { namespace: scene.namespace });
  return items.map(({ metadata }) => metadata.name ?? "").toSorted();
}

/** Deploys this many revisions, a minute apart. Returns the names of their Updates. */
async function deploy(scene: StackScene, count: number): Promise<string[]> {
  const names: string[] = [];
  for (let revision = 1; revision <= count; revision++) {
    await scene.program("program", `text ${revision}`);
    const { status } = await scene.isReady("web", String(revision));
    names.push(status?.lastUpdate?.name ?? "");
    scene.jump(60_000);
  }
  return names;
}

test(
  "the newest Updates are kept",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program", "text 1");
    await scene.stack("web", { successfulUpdatesHistoryLimit: 2 });
    const names = await deploy(scene, 5);
    const kept = names.slice(-2).toSorted();
    await waitFor(async () => Bun.deepEquals(await namesOf(scene), kept), { what: "two Updates to be left" });
    expect(scene.runs).toHaveLength(5);
    expect((await scene.isReady("web", "5")).status?.outputs).toBeDefined();
  },
  testTimeoutMs,
);

test(
  "an Update that somebody else created stays, also with the Stack as its owner",
  async () => {
    await using scene = await StackScene.open();
    await scene.program("program", "text 1");
    await scene.stack("web", { successfulUpdatesHistoryLimit: 0 });
    const { metadata } = await scene.isReady("web", "1");
    const { apiVersion, kind } = updateKind;
    const reference = { apiVersion: stackKind.apiVersion, kind: stackKind.kind, name: "web", uid: metadata.uid ?? "" };
    const theirs: Update = {
      apiVersion,
      kind,
      metadata: { ...scene.ref("theirs"), ownerReferences: [reference] },
      spec: { workspaceName: "elsewhere", stackName: "dev", type: "up" },
    };
    await scene.client.create(updates, theirs);
    const at = "2026-01-01T00:00:00Z";
    const complete = { type: "Complete", status: "True", reason: "Updated", message: "It is.", lastTransitionTime: at };
    const patch = { type: "merge", body: { status: { endTime: at, conditions: [complete] } } } as const;
    await scene.client.patch(updates, scene.ref("theirs"), { patch, subresource: "status" });
    const names = await deploy(scene, 3);
    const kept = ["theirs", ...names.slice(-1)].toSorted();
    await waitFor(async () => Bun.deepEquals(await namesOf(scene), kept), { what: "theirs and the last to be left" });
    expect(theirs.metadata.annotations?.[triggerAnnotation]).toBeUndefined();
  },
  testTimeoutMs,
);

test(
  "the Stack continues if the API server denies the deletion",
  async () => {
    await using scene = await StackScene.open("without operator");
    const { proxy, client } = await scene.proxy();
    proxy.on(({ method, path }) => (method === "DELETE" && path.includes("/updates/") ? { status: 403 } : undefined));
    scene.rights.expectForbidden(/./);
    scene.start({ client });
    await scene.program("program", "text 1");
    await scene.stack("web", { successfulUpdatesHistoryLimit: 0 });
    const names = await deploy(scene, 3);
    expect(await namesOf(scene)).toEqual(names.toSorted());
  },
  testTimeoutMs,
);
