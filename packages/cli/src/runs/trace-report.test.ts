import { describe, expect, test } from "bun:test";

import { ago } from "../testing/objects.ts";
import { aRecord, orderContent, urns } from "../testing/runs.ts";
import { objectKind } from "./object-kinds.ts";
import { searchRecords, traceBlocks, wantedFor } from "./trace-report.ts";

const place = { namespace: "shop" };

describe("what is searched for", () => {
  test.each([
    [urns.vpc, { kind: "urn", urn: urns.vpc }],
    ["vpc-0a1b", { kind: "id", id: "vpc-0a1b" }],
    ["certificates.cert-manager.io/web", { kind: "object", type: "certificates.cert-manager.io", id: "shop/web" }],
    ["shop/app", { kind: "id", id: "shop/app" }],
    ["projects/a/topics/b", { kind: "id", id: "projects/a/topics/b" }],
  ] as const)("%s", (query, wanted) => {
    expect(wantedFor(query, place)).toEqual(wanted);
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
  const later = { record: { endTime: ago(10) }, content: { ...orderContent, resources: [{ urn: urns.stack }] } };

  test("of the Update that created a resource name the commit", async () => {
    const update = { name: "orders-new", content: { ...orderContent, events: [] }, record: { revision: "later" } };
    const records = [await aRecord(update), await aRecord()];
    expect(await searchRecords(records, { kind: "id", id: "vpc-0a1b" })).toMatchObject([
      { exists: true, update: "orders-new", createdBy: "orders-3f9c1e77ab20", revision: "9c4f2d1" },
    ]);
  });

  test("show that a resource no longer exists", async () => {
    const records = [await aRecord({ name: "orders-later", ...later }), await aRecord()];
    const [match] = await searchRecords(records, { kind: "urn", urn: urns.vpc });
    expect(match).toMatchObject({ exists: false, update: "orders-3f9c1e77ab20" });
  });

  test("match an object by its kind, whatever the provider calls it, and not another kind of that name", async () => {
    const found = async (type: string) =>
      (await searchRecords([await aRecord()], { kind: "object", type, id: "shop/app" })).map(({ urn }) => urn);
    expect(await found("deployments.apps")).toEqual([urns.app]);
    expect(await found("Service")).toEqual([]);
  });
});

test("an object of the operator is explained", () => {
  const trace = { query: "pod/web-workspace-0", owners: ["statefulset/web-workspace"], matches: [], belongsTo: "web" };
  const blocks = traceBlocks({ apiVersion: "cli.pulumi.com/v1", kind: "Trace", ...trace }, 0);
  expect(JSON.stringify(blocks)).toContain("The operator created it for the workspace of Stack web.");
});
