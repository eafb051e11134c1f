import { expect, test } from "bun:test";

import { countNodes, resourceTree, type ResourceNode } from "./resource-tree.ts";
import { urnOf } from "./testing.ts";

const outline = (nodes: readonly ResourceNode[]): unknown[] =>
  nodes.map(({ name, children }) => (children.length === 0 ? name : [name, ...outline(children)]));

test("resources are below their parents, without providers", () => {
  const nodes = resourceTree([
    { urn: urnOf("child"), parent: urnOf("root") },
    { urn: urnOf("provider", "pulumi:providers:aws") },
    { urn: urnOf("root") },
    { urn: urnOf("grandchild"), parent: urnOf("child") },
    { urn: urnOf("orphan"), parent: urnOf("gone") },
  ]);
  expect(outline(nodes)).toEqual(["orphan", ["root", ["child", "grandchild"]]]);
  expect(countNodes(nodes)).toBe(4);
});

test("resources that are each other's parents do not hang the page", () => {
  const circle = [
    { urn: urnOf("a"), parent: urnOf("b") },
    { urn: urnOf("b"), parent: urnOf("a") },
  ];
  expect(resourceTree(circle)).toEqual([]);
});
