import { expect, test } from "bun:test";

import { stackGraph, labels } from "./commands/graph.ts";
import { documentOf, type Graph } from "./documents.ts";
import { layersOf, svg } from "./graph-svg.ts";
import { expectGolden } from "./testing/golden.ts";
import { aStack, notReady, ready } from "./testing/objects.ts";

const reads = (stack: string, output: string) => ({
  envRefs: { URL: { type: "StackOutput" as const, stack, output } },
});

const graph = stackGraph([
  aStack("network", { conditions: ready("") }),
  aStack("db", { conditions: ready("") }, { prerequisites: [{ name: "network" }] }),
  aStack(
    "web",
    { conditions: notReady("Stalled", "UpdateFailed", "") },
    { ...reads("db", "url"), prerequisites: [{ name: "cache" }] },
  ),
]);

test("a picture of the Stacks", () => {
  const text = svg(graph, labels(graph.nodes));
  expectGolden("graph.svg", text);
  expect(text).toContain(">url</text>");
});

test("a Stack is to the right of what it needs", () => {
  expect(layersOf(graph).map((layer) => layer.map(({ name }) => name))).toEqual([
    ["network", "cache"],
    ["db"],
    ["web"],
  ]);
});

test("a cycle and names that look like markup are drawn", () => {
  const node = (name: string): Graph["nodes"][number] => ({ namespace: "a", name, state: "Waiting" });
  const edge = (from: string, to: string): Graph["edges"][number] => ({ namespace: "a", from, to, outputs: ["<b>"] });
  const cycle = documentOf("Graph", { nodes: [node("x"), node("y")], edges: [edge("x", "y"), edge("y", "x")] });
  const text = svg(cycle, ({ name }) => name);
  expect(text).toContain("&lt;b&gt;");
  expect(text.match(/<rect/g)).toHaveLength(2);
});
