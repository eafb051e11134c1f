import { describe, expect, test } from "bun:test";

import { layoutGraph } from "./graph-layout.ts";
import { resourceGraph } from "./resource-graph.ts";
import { urnOf } from "./testing.ts";

const root = urnOf("shop-dev", "pulumi:pulumi:Stack");
const [vpc, subnet, bucket] = [urnOf("vpc"), urnOf("subnet"), urnOf("bucket")];

describe("the graph of resources", () => {
  test("has lines to parents and dependencies, without the stack, providers and unknown resources", () => {
    const provider = urnOf("default", "pulumi:providers:aws");
    const { nodes, edges } = resourceGraph([
      { urn: root },
      { urn: provider, parent: root },
      { urn: vpc, parent: root, provider },
      { urn: subnet, parent: vpc, dependencies: [vpc, bucket, bucket, provider, urnOf("omitted"), subnet] },
      { urn: bucket, parent: root },
    ]);
    expect(nodes.map(({ name }) => name)).toEqual(["vpc", "subnet", "bucket"]);
    expect(edges).toEqual([
      { from: subnet, to: vpc, kind: "parent" },
      { from: subnet, to: bucket, kind: "dependency" },
    ]);
  });

  test("places a resource to the right of its parent and its dependencies", () => {
    const graph = resourceGraph([
      { urn: subnet, parent: vpc },
      { urn: bucket, dependencies: [subnet] },
      { urn: vpc, parent: root },
    ]);
    const x = new Map(layoutGraph(graph).nodes.map(({ node, x }) => [node.name, x]));
    expect([x.get("vpc"), x.get("subnet"), x.get("bucket")]).toEqual([0, 248, 496]);
  });

  test("resources that depend on each other do not hang the page", () => {
    const graph = resourceGraph([
      { urn: vpc, dependencies: [subnet] },
      { urn: subnet, dependencies: [vpc] },
    ]);
    expect(layoutGraph(graph).nodes).toHaveLength(2);
  });

  test("a large stack has one node for each resource", () => {
    const many = Array.from({ length: 1000 }, (_, at) => ({ urn: urnOf(`r${at}`), parent: root }));
    expect(resourceGraph([{ urn: root }, ...many]).nodes).toHaveLength(1000);
  });
});
