/** The record of a run: stored once, with its Update as owner, and never at the expense of the run's result. */
import { recordSizeAnnotation, triggerReasonAnnotation, type Update, type UpdateRecord } from "@pko/api";
import { refKey } from "@pko/kube";
import { updateRecords } from "@pko/operator";
import { decodeContent } from "@pko/records";
import { waitFor } from "@pko/testkit";
import { expect, test } from "bun:test";
import type { OwnerReference } from "kubernetes-types/meta/v1";

import { apiServerWithApi } from "../api/install.ts";
import type { Operator } from "../harness/operator.ts";
import type { FakeAgent } from "./fake-agent.ts";
import { updates, UpdateScene } from "./scene.ts";

const succeeded = { Complete: "True/Updated" };

interface Started {
  readonly scene: UpdateScene;
  readonly agent: FakeAgent;
  readonly operator: Operator;
  readonly uid: string;
  /** Of the operator. */
  readonly reasons: () => string[];
  readonly texts: () => string[];
  readonly metrics: () => string;
}

/** A scene in which an Update has started. */
async function startedWorld(): Promise<Started> {
  const scene = await UpdateScene.open();
  const agent = await scene.workspace("web");
  const operator = scene.operator();
  const uid = await scene.update("web-1");
  await waitFor(() => agent.started.includes(uid), { what: "the run to start" });
  const reasons = (): string[] => operator.events.map(({ reason }) => reason);
  const texts = (): string[] => operator.events.map(({ message }) => message);
  return { scene, agent, operator, uid, reasons, texts, metrics: () => operator.metrics.expose() };
}

const reference = (uid: string): OwnerReference => ({
  apiVersion: updates.apiVersion,
  kind: updates.kind,
  name: "web-1",
  uid,
  controller: true,
});

const occupant = (scene: UpdateScene, ownerReferences: OwnerReference[]): UpdateRecord => ({
  apiVersion: updateRecords.apiVersion,
  kind: updateRecords.kind,
  metadata: { ...scene.ref("web-1"), ownerReferences },
  record: {
    updateName: "web-1",
    updateUid: "other",
    pulumiStack: "other",
    type: "up",
    result: "failed",
    startTime: "2026-01-01T00:00:00Z",
    endTime: "2026-01-01T00:00:00Z",
  },
});

test("a run leaves a record that its Update owns, with its events", async () => {
  const { scene, agent, uid, reasons, metrics } = await startedWorld();
  await using _ = scene;
  agent.emit(uid, { kind: "resource", phase: "finished", op: "create", urn: "urn:a", resourceType: "t" });
  agent.finish(uid);
  await scene.until("web-1", succeeded);
  const [found, ...others] = await scene.records();
  expect(others).toEqual([]);
  expect(found?.metadata).toMatchObject({ name: "web-1", ownerReferences: [reference(uid)] });
  expect(found?.record).toMatchObject({
    updateName: "web-1",
    updateUid: uid,
    workspaceName: "web",
    pulumiStack: "dev",
    type: "up",
    result: "succeeded",
    endTime: "2040-01-01T00:00:00Z",
    versions: { pulumi: "3.200.0" },
    inputs: { program: "sha256:1" },
  });
  const content = await decodeContent(found?.record.content ?? "");
  expect(content?.events.map(({ event }) => event.kind)).toEqual(["resource"]);
  // Events and metrics follow the status.
  await waitFor(() => metrics().includes('update_records_total{result="stored"} 1'));
  expect(reasons()).toEqual(["UpdateSucceeded"]);
});

test("the object with the largest record is not larger than 64 KiB, and its annotation has its size", async () => {
  const { scene, agent, uid } = await startedWorld();
  await using _ = scene;
  agent.recordContent = "x".repeat(57_344);
  const error = { class: "programError", message: "ü".repeat(8000), lines: [] } as const;
  agent.finish(uid, { outcome: "failed", error: { ...error, lines: [] } });
  await scene.until("web-1", { Complete: "True/UpdateFailed" });
  const [found] = await scene.records();
  expect(found?.record.content).toHaveLength(57_344);
  const bytes = Buffer.byteLength(JSON.stringify(found));
  expect(bytes).toBeLessThanOrEqual(64 * 1024);
  expect(bytes - Number(found?.metadata.annotations?.[recordSizeAnnotation])).toBeLessThan(3 * 1024);
});

test("kubectl shows what ran and why", async () => {
  const { scene, agent, operator, uid } = await startedWorld();
  await using _ = scene;
  const body = { metadata: { annotations: { [triggerReasonAnnotation]: "the new revision 4f2a" } } };
  await scene.client.patch(updates, scene.ref("web-1"), { patch: { type: "merge", body } });
  const stored = (): Update | undefined => operator.stores.updates.store.get(refKey(scene.ref("web-1")));
  const isAnnotated = (): boolean => stored()?.metadata.annotations?.[triggerReasonAnnotation] !== undefined;
  await waitFor(isAnnotated, { what: "the operator to see the annotation" });
  agent.finish(uid, { revision: "4f2a" });
  await scene.until("web-1", succeeded);
  const table = async (kind: string): Promise<string[]> => {
    const { kubectl } = await apiServerWithApi();
    const text = await kubectl(["get", kind, "-n", scene.namespace, "-o", "wide"]);
    return text.trim().split(/\s{2,}|\n/);
  };
  const cells = await table("updaterecords");
  for (const cell of ["web-1", "up", "succeeded", "4f2a", "the new revision 4f2a"]) expect(cells).toContain(cell);
  const updateCells = await table("updates");
  for (const cell of ["TRIGGER", "the new revision 4f2a"]) expect(updateCells).toContain(cell);
});

test("a run of an agent that is older than records has a record without events", async () => {
  const { scene, agent, uid, reasons } = await startedWorld();
  await using _ = scene;
  agent.hasRecords = false;
  agent.finish(uid);
  await scene.until("web-1", succeeded);
  const [found] = await scene.records();
  expect(found?.record.result).toBe("succeeded");
  expect(found?.record.content).toBeUndefined();
  await waitFor(() => reasons().length > 0, { what: "the events, which follow the status" });
  expect(reasons()).toEqual(["UpdateSucceeded"]);
});

test("a run whose pod is deleted has a record without events", async () => {
  const { scene } = await startedWorld();
  await using _ = scene;
  await scene.deletePod("web");
  await scene.until("web-1", { Complete: "True/Aborted" });
  const [found] = await scene.records();
  expect(found?.record.result).toBe("interrupted");
  expect(found?.record.message).toContain("deleted");
});

test("a record of another owner is not changed; the run's result is stored nevertheless", async () => {
  const { scene, agent, uid, reasons, metrics } = await startedWorld();
  await using _ = scene;
  const before = await scene.client.create(updateRecords, occupant(scene, []));
  agent.finish(uid);
  await scene.until("web-1", succeeded);
  expect(await scene.records()).toEqual([before]);
  await waitFor(() => reasons().length === 2, { what: "the events, which follow the status" });
  expect(reasons()).toEqual(["UpdateSucceeded", "RecordNotStored"]);
  await waitFor(() => metrics().includes('update_records_total{result="failed"} 1'));
});

test("the record of an earlier Update of the same name is replaced", async () => {
  const { scene, agent, uid } = await startedWorld();
  await using _ = scene;
  await scene.client.create(updateRecords, occupant(scene, [reference("the-uid-of-an-earlier-one")]));
  agent.finish(uid);
  await scene.until("web-1", succeeded);
  expect((await scene.records()).map(({ record }) => record.updateUid)).toEqual([uid]);
});

for (const status of [403, 404, 500, 503]) {
  test(`a record that the API server rejects with ${status} does not delay the result`, async () => {
    await using scene = await UpdateScene.open();
    const { proxy, client } = await scene.proxy();
    proxy.on(({ method, path }) => (method === "POST" && path.includes("updaterecords") ? { status } : undefined));
    if (status === 403) scene.rights.expectForbidden(/./);
    const agent = await scene.workspace("web");
    const operator = scene.operator({ client });
    const uid = await scene.update("web-1");
    await waitFor(() => agent.started.includes(uid), { what: "the run to start" });
    agent.finish(uid);
    await scene.until("web-1", succeeded);
    await waitFor(() => operator.events.length === 2, { what: "the events, which follow the status" });
    expect(operator.events.map(({ reason }) => reason)).toEqual(["UpdateSucceeded", "RecordNotStored"]);
    expect(await scene.records()).toEqual([]);
  });
}

test.each([500, 409])("a record is stored despite temporary errors %i of the API server", async (status) => {
  await using scene = await UpdateScene.open();
  const { proxy, client } = await scene.proxy();
  let attempts = 0;
  proxy.on(({ method, path }) =>
    method === "POST" && path.includes("updaterecords") && ++attempts <= 3 ? { status } : undefined,
  );
  const agent = await scene.workspace("web");
  scene.operator({ client });
  const uid = await scene.update("web-1");
  await waitFor(() => agent.started.includes(uid), { what: "the run to start" });
  agent.finish(uid);
  await scene.until("web-1", succeeded);
  expect((await scene.records()).map(({ record }) => record.updateUid)).toEqual([uid]);
});

test("no record and no event contains a secret output or a plan", async () => {
  const { scene, agent, uid, texts } = await startedWorld();
  await using _ = scene;
  agent.outputs.push({ name: "password", value: "canary-output", secret: true, known: true });
  agent.emit(uid, { kind: "diagnostic", severity: "info", message: "[secret]" });
  agent.finish(uid);
  await scene.until("web-1", succeeded);
  const all = await scene.records();
  expect(all).toHaveLength(1);
  const contents = await Promise.all(all.map(({ record }) => decodeContent(record.content ?? "")));
  expect(JSON.stringify([all, contents, texts()])).not.toContain("canary");
});
