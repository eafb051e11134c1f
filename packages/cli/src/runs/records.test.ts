import type { UpdateRecord, UpdateRecordContent } from "@pko/api";
import { emptyContent, type RecordContent } from "@pko/records";
import { describe, expect, test } from "bun:test";

import { render } from "../output/render.ts";
import { now } from "../testing/objects.ts";
import { aRecord, orderContent, urns } from "../testing/runs.ts";
import { diffBlocks, itemOf, latestPreview } from "./diff-report.ts";
import { latestResources } from "./records.ts";
import { describeTree, treeBlocks } from "./tree-report.ts";

const named = async (name: string, content: RecordContent, record: Partial<UpdateRecordContent> = {}) =>
  await aRecord({ name, content, record });

describe("the tree of a Stack", () => {
  const omitted = { events: 0, resources: 7, values: 0 };
  const some = [{ urn: urns.stack }];

  test.each([
    ["has no resources after a destroy", emptyContent, ["no resources after Update orders-new"]],
    [
      "reports that a later list did not fit",
      { ...emptyContent, omitted },
      ["5 resources after Update orders-old", "the record of the later Update orders-new has none"],
    ],
    [
      "reports that a list is partial",
      { ...emptyContent, resources: some, partialResources: true },
      ["1 resource after Update orders-new", "Update orders-new did not visit all of them"],
    ],
    [
      "reports that a part of the list did not fit",
      { ...emptyContent, resources: some, omitted },
      ["7 more resources did not fit"],
    ],
  ])("%s", async (_, content, expected) => {
    const text = await shown(await named("orders-new", content), await named("orders-old", orderContent));
    for (const part of expected) expect(text).toContain(part);
  });

  test("ignores previews", async () => {
    const preview = await named("orders-new", emptyContent, { type: "preview" });
    expect(await shown(preview, await named("orders-old", orderContent))).toContain("after Update orders-old");
  });

  const shown = async (...records: readonly UpdateRecord[]): Promise<string> => {
    const latest = await latestResources(records);
    if (!latest) throw new Error("no record");
    const blocks = treeBlocks(describeTree({ namespace: "shop", name: "orders" }, latest), now);
    return render(blocks, { width: 200, color: false });
  };
});

describe("the latest preview", () => {
  const preview = async () => await named("orders-preview", orderContent, { type: "preview", result: "succeeded" });
  test.each([
    ["counts if nothing ran since", undefined, true],
    ["does not count after a successful update", { type: "up", result: "succeeded" }, false],
    ["counts after an update that failed", { type: "up", result: "failed" }, true],
    ["counts after a drift check", { type: "refresh", previewOnly: true, result: "succeeded" }, true],
  ] as const)("%s", async (_, later, counts) => {
    const records = [...(later ? [await named("orders-later", orderContent, later)] : []), await preview()];
    expect(latestPreview(records)?.record.updateName).toBe(counts ? "orders-preview" : undefined);
  });
});

test("a diff of several namespaces names them", async () => {
  const item = await itemOf("orders", await aRecord());
  const titles = (items: readonly (typeof item)[]): string =>
    render(diffBlocks(items, now), { width: 200, color: false });
  expect(titles([item, item])).toContain("of Stack orders\n");
  expect(titles([item, { ...item, namespace: "bank" }])).toContain("of Stack bank/orders\n");
});
