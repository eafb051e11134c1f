/** The Secrets of an Update: created once, and never in the place of another owner's. */
import { expect, test } from "bun:test";
import { updateKind } from "@pko/api";
import { builtin, type ApiObject } from "@pko/kube";
import type { RunResult } from "@pko/rpc";
import { waitFor } from "@pko/testkit";
import type { Secret } from "kubernetes-types/core/v1";
import type { OwnerReference } from "kubernetes-types/meta/v1";

import { World } from "./harness.ts";

const succeeded = { Complete: "True/Updated" };
const longOutput = { tail: "x".repeat(20_000), bytes: 20_000, truncated: false };

/** A world in which an Update has started. */
async function startedWorld(
  type = "up",
): Promise<{ world: World; uid: string; finish: (result: Partial<RunResult>) => void }> {
  const world = await World.create();
  const agent = await world.workspace("web");
  agent.outputs.push({ name: "url", value: "http://x", secret: false, known: true });
  world.operator();
  const uid = await world.update("web-1", { type });
  await waitFor(() => agent.started.includes(uid), { what: "the run to start" });
  return { world, uid, finish: (result) => agent.finish(uid, result) };
}

async function secretOf(
  world: World,
  name: string,
  ownerReferences: OwnerReference[] = [],
): Promise<ApiObject<Secret>> {
  const metadata = { ...world.ref(name), ownerReferences };
  return await world.client.create(builtin.secrets, {
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
const beside: OwnerReference = { apiVersion: "v1", kind: "ConfigMap", name: "theirs", uid: "another-uid" };

test("Secrets of another owner are not changed; the Update ends nevertheless, and names them", async () => {
  const { world, finish } = await startedWorld("preview");
  await using _ = world;
  const names = ["web-1-stack-outputs", "web-1-stdout"];
  const before = [];
  for (const name of names) before.push(await secretOf(world, name));
  finish({ output: longOutput });
  const { status } = await world.until("web-1", succeeded);
  for (const name of names) {
    const text = `Secret ${world.namespace.name}/${name} (without an owner) already exists`;
    expect(status?.message).toContain(text);
  }
  expect(await Promise.all(names.map((name) => world.secret(name)))).toEqual(before);
  expect(status?.stdout?.secretName).toBeUndefined();
});

test("Secrets of an earlier Update of the same name are replaced", async () => {
  const { world, uid, finish } = await startedWorld();
  await using _ = world;
  await secretOf(world, "web-1-stack-outputs", [earlier]);
  finish({});
  await world.until("web-1", succeeded);
  const secret = await world.secret("web-1-stack-outputs");
  expect(secret?.metadata.ownerReferences).toMatchObject([{ uid, controller: true }]);
  expect(Object.keys(secret?.data ?? {})).toEqual(["url"]);
});

test("Secrets of an earlier Update with another owner are not replaced", async () => {
  const { world, finish } = await startedWorld();
  await using _ = world;
  const before = await secretOf(world, "web-1-stack-outputs", [earlier, beside]);
  finish({});
  const { status } = await world.until("web-1", succeeded);
  expect(status?.message).toContain("The Secret web-1-stack-outputs could not be created");
  expect(await world.secret("web-1-stack-outputs")).toEqual(before);
});

test("a Secret that the Go operator created for the same Update is kept", async () => {
  const { world, uid, finish } = await startedWorld();
  await using _ = world;
  const before = await secretOf(world, "web-1-stack-outputs", [reference(uid, false)]);
  finish({});
  const { status } = await world.until("web-1", succeeded);
  expect(status?.message).toBeUndefined();
  expect(status?.outputs).toBe("web-1-stack-outputs");
  expect(await world.secret("web-1-stack-outputs")).toEqual(before);
});
