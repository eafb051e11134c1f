/** The records of all runs stay within their budget: the oldest are deleted, and their Updates stay. */
import { recordSizeAnnotation, updateKind, type UpdateRecord } from "@pko/api";
import { recordsController, updateRecords, updates } from "@pko/operator";
import { waitFor } from "@pko/testkit";
import { expect, test } from "bun:test";

import type { Operator, OperatorParts, Wiring } from "../harness/operator.ts";
import { openPlace, Scene } from "../harness/scene.ts";

const kibibyte = 1024;

class BudgetScene extends Scene {
  static async open(): Promise<BudgetScene> {
    return new BudgetScene(await openPlace());
  }

  operator(maxTotalBytes: number): Operator {
    const wire = ({ stores, ...parts }: OperatorParts): Wiring => ({
      controllers: [recordsController({ ...parts, records: stores.records, maxTotalBytes })],
    });
    return this.startOperator({}, wire);
  }

  /** An Update with a record of this size. */
  async record(name: string, bytes: number, finalizers: string[] = []): Promise<UpdateRecord> {
    const { apiVersion, kind } = updateKind;
    const spec = { workspaceName: "web", stackName: "dev", type: "up" };
    const update = await this.client.create(updates, { apiVersion, kind, metadata: this.ref(name), spec });
    const owner = { apiVersion, kind, name, uid: update.metadata.uid ?? "", controller: true };
    return await this.client.create(updateRecords, {
      apiVersion: updateRecords.apiVersion,
      kind: updateRecords.kind,
      metadata: {
        ...this.ref(name),
        annotations: { [recordSizeAnnotation]: String(bytes) },
        ownerReferences: [owner],
        finalizers,
      },
      record: {
        updateName: name,
        updateUid: owner.uid,
        pulumiStack: "dev",
        type: "up",
        result: "succeeded",
        startTime: "2026-01-01T00:00:00Z",
        endTime: "2026-01-01T00:00:00Z",
        content: "canary".repeat(100),
      },
    });
  }

  async names(): Promise<string[]> {
    const { items } = await this.client.list(updateRecords, { namespace: this.namespace });
    return items.map(({ metadata }) => metadata.name ?? "").toSorted();
  }
}

test("the oldest records are deleted, with an event on their Updates, which stay", async () => {
  await using scene = await BudgetScene.open();
  for (const name of ["web-1", "web-2", "web-3"]) await scene.record(name, 30 * kibibyte);
  const operator = scene.operator(64 * kibibyte);
  await waitFor(async () => Bun.deepEquals(await scene.names(), ["web-2", "web-3"]), { what: "the first to go" });
  await scene.record("web-4", 40 * kibibyte);
  await waitFor(async () => (await scene.names()).length <= 1, { what: "more to go" });
  expect(await scene.names()).toEqual(["web-4"]);
  const { items } = await scene.client.list(updates, { namespace: scene.namespace });
  expect(items).toHaveLength(4);
  // Events and metrics follow the deletion.
  await waitFor(() => operator.metrics.expose().includes("update_records_deleted_total 3"));
  expect(operator.events.map(({ reason, about }) => `${reason} ${about}`).toSorted()).toEqual(
    ["web-1", "web-2", "web-3"].map((name) => `RecordDeleted ${name}`),
  );
  await waitFor(() => operator.metrics.expose().includes(`update_records_bytes ${40 * kibibyte}`));
});

test("a record that a finalizer keeps is deleted once, and no longer counted", async () => {
  await using scene = await BudgetScene.open();
  const { metadata } = await scene.record("web-1", 40 * kibibyte, ["example.com/archive"]);
  await scene.record("web-2", 40 * kibibyte);
  const operator = scene.operator(64 * kibibyte);
  const ref = { namespace: metadata.namespace ?? "", name: "web-1" };
  const deletions = (): string[] => operator.events.map(({ reason, about }) => `${reason} ${about}`);
  await waitFor(() => operator.metrics.expose().includes(`update_records_bytes ${40 * kibibyte}`));
  // The next pass deletes another one, and would delete the first again.
  await scene.record("web-3", 60 * kibibyte);
  await waitFor(async () => Bun.deepEquals(await scene.names(), ["web-1", "web-3"]), { what: "the second to go" });
  await waitFor(() => deletions().length >= 2, { what: "the events, which follow the deletions" });
  expect(deletions()).toEqual(["RecordDeleted web-1", "RecordDeleted web-2"]);
  await scene.client.patch(updateRecords, ref, { patch: { type: "merge", body: { metadata: { finalizers: null } } } });
});

test("the operator keeps no content of records in memory", async () => {
  await using scene = await BudgetScene.open();
  await scene.record("web-1", 30 * kibibyte);
  const operator = scene.operator(64 * kibibyte);
  await operator.synced;
  const known = operator.stores.records.store.list();
  expect(known.map(({ metadata }) => metadata.name)).toEqual(["web-1"]);
  expect(JSON.stringify(known)).not.toContain("canary");
});

test("an object that the operator did not write is neither counted nor deleted", async () => {
  await using scene = await BudgetScene.open();
  const { metadata, ...rest } = await scene.record("web-1", 30 * kibibyte);
  const { apiVersion, kind, record } = rest;
  const theirs = { name: "theirs", namespace: metadata.namespace ?? "" };
  await scene.client.create(updateRecords, { apiVersion, kind, metadata: theirs, record });
  scene.operator(16 * kibibyte);
  await waitFor(async () => (await scene.names()).length === 1, { what: "ours to go" });
  expect(await scene.names()).toEqual(["theirs"]);
});
