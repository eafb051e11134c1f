import type { UpdateRecord, UpdateRecordContent } from "@pko/api";
import type { RecordContent } from "@pko/records";
import { describe, expect, test } from "bun:test";

import { ago } from "../testing/objects.ts";
import { aRecord, finished, numbered, orderContent, urns } from "../testing/runs.ts";
import { objectKind } from "./object-kinds.ts";
import { decodeRecords } from "./records.ts";
import { searchRecords, traceBlocks, wantedFor } from "./trace-report.ts";

const place = { namespace: "shop" };

describe("what is searched for", () => {
  const id = (text: string) => ({ kind: "id", id: text }) as const;
  test.each([
    [urns.vpc, [{ kind: "urn", urn: urns.vpc }]],
    ["vpc-0a1b", [id("vpc-0a1b")]],
    [
      "certificates.cert-manager.io/web",
      [
        { kind: "object", type: "certificates.cert-manager.io", id: "shop/web" },
        id("certificates.cert-manager.io/web"),
      ],
    ],
    ["shop/app", [{ kind: "object", type: "shop", id: "shop/app" }, id("shop/app")]],
    ["projects/a/topics/b", [id("projects/a/topics/b")]],
  ] as const)("%s", (query, wanted) => {
    expect(wantedFor(query, place)).toEqual([...wanted]);
  });

  test("names of kinds that kubectl accepts", () => {
    for (const name of ["Deployment", "deployments", "deploy", "deployments.apps"]) {
      expect(objectKind(name)?.kind).toBe("Deployment");
    }
    expect(objectKind("svc")?.kind).toBe("Service");
    expect(objectKind("widgets")).toBeUndefined();
  });
});

describe("the records", () => {
  const trace = async (records: readonly UpdateRecord[], id = "vpc-0a1b") =>
    searchRecords(await decodeRecords(records), [{ kind: "id", id }]);
  const quiet = { ...orderContent, events: [] };
  const without = { ...quiet, resources: [{ urn: urns.stack }] };
  const later = (content: RecordContent, record: Partial<UpdateRecordContent> = {}) =>
    aRecord({ name: "orders-later", content, record: { endTime: ago(10), revision: "later", ...record } });
  const first = { exists: true, createdBy: "orders-3f9c1e77ab20", revision: "9c4f2d1" };

  test("of the Update that created a resource name the commit", async () => {
    const records = [await later(quiet), await aRecord()];
    expect(await trace(records)).toMatchObject([{ ...first, update: "orders-later" }]);
  });

  test("of the latest creation or replacement count", async () => {
    const replaced = numbered([finished(urns.vpc, "create-replacement")]);
    const records = [await later({ ...orderContent, events: replaced }), await aRecord()];
    expect(await trace(records)).toMatchObject([{ createdBy: "orders-later", revision: "later" }]);
  });

  test("of a creation without a revision do not name the commit of another run", async () => {
    const created = { ...(await aRecord()) };
    const { revision: _, ...record } = created.record;
    const [match] = await trace([await later(quiet), { ...created, record }]);
    expect([match?.createdBy, match?.revision]).toEqual(["orders-3f9c1e77ab20", undefined]);
  });

  test.each([
    ["a preview", { type: "preview" }],
    ["a destroy that is only previewed", { type: "destroy", previewOnly: true }],
  ] as const)("of %s do not count", async (_, record) => {
    const records = [await later(without, record), await later(orderContent, record), await aRecord()];
    expect(await trace(records)).toMatchObject([{ ...first, update: "orders-3f9c1e77ab20" }]);
  });

  test.each([
    ["a list without it", without],
    ["an empty list, after a destroy", { ...quiet, resources: [] }],
    [
      "a deletion, in a list that is partial",
      { ...without, events: numbered([finished(urns.vpc, "delete")]), partialResources: true },
    ],
  ])("show that a resource no longer exists: %s", async (_, content) => {
    const [match] = await trace([await later(content), await aRecord()]);
    expect(match).toMatchObject({ exists: false, update: "orders-3f9c1e77ab20" });
  });

  test.each([
    ["that are partial", { ...without, partialResources: true }],
    ["that did not fit", { ...without, omitted: { events: 0, resources: 3, values: 0 } }],
  ])("with lists %s do not show this", async (_, content) => {
    expect(await trace([await later(content), await aRecord()])).toMatchObject([first]);
  });

  test("match an object by its kind, whatever the provider calls it, and not another kind of that name", async () => {
    const records = await decodeRecords([await aRecord()]);
    const found = (type: string) =>
      searchRecords(records, [{ kind: "object", type, id: "shop/app" }]).map(({ urn }) => urn);
    expect(found("deployments.apps")).toEqual([urns.app]);
    expect(found("Service")).toEqual([]);
  });
});

test("an object of the operator is explained", () => {
  const trace = { query: "pod/web-workspace-0", owners: ["statefulset/web-workspace"], matches: [], belongsTo: "web" };
  const blocks = traceBlocks({ apiVersion: "cli.pulumi.com/v1", kind: "Trace", ...trace }, 0);
  expect(JSON.stringify(blocks)).toContain("The operator created it for the workspace of Stack web.");
});
