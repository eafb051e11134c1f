/** `graph`: Stacks with their prerequisites and the outputs that they read from each other. */
import { dependenciesOf, normalizeStack, outputReferences, type Stack } from "@pko/api";

import type { Command } from "../command.ts";
import { documentOf, type Graph, type StackState } from "../documents.ts";
import { stacks } from "../kinds.ts";
import { verbatim } from "../output/blocks.ts";
import { stateOf } from "../stacks/summary.ts";

export const graph: Command = {
  name: "graph",
  summary: "Draw Stacks with their prerequisites and outputs",
  details:
    "Prints Mermaid, which GitHub and many other tools show. With -o dot, prints Graphviz, and with -o svg, a picture.",
  group: "See",
  allNamespaces: "alone",
  formats: ["mermaid", "dot", "svg"],
  async run({ client, namespace, allNamespaces }) {
    const { items } = await client.list(stacks, { ...(!allNamespaces && { namespace }) });
    const document = stackGraph(items);
    const { svg } = await import("../graph-svg.ts");
    const picture = svg(document, labels(document.nodes));
    const renderings = { mermaid: mermaid(document), dot: dot(document), svg: picture };
    return {
      document,
      blocks: [verbatim(renderings.mermaid)],
      renderings: { text: renderings.mermaid, ...renderings },
    };
  },
};

export function stackGraph(items: readonly Stack[]): Graph {
  const sorted = items.toSorted((a, b) => idOf(a).localeCompare(idOf(b)));
  const known = new Set(sorted.map(idOf));
  const edges = sorted.flatMap(edgesFrom);
  const missing = new Map(
    edges
      .filter(({ namespace, to }) => !known.has(`${namespace}/${to}`))
      .map(({ namespace, to }) => [`${namespace}/${to}`, { namespace, name: to, state: "Missing" as const }]),
  );
  const nodes: Graph["nodes"] = sorted.map((stack) => Object.assign(nameIn(stack), { state: stateOf(stack) }));
  return documentOf("Graph", { nodes: [...nodes, ...missing.values()], edges });
}

const nameIn = ({ metadata }: Stack) => ({ namespace: metadata.namespace ?? "", name: metadata.name ?? "" });

function idOf(stack: Stack): string {
  const { namespace, name } = nameIn(stack);
  return `${namespace}/${name}`;
}

function edgesFrom(stack: Stack): Graph["edges"] {
  const { namespace, name } = nameIn(stack);
  const normal = normalizeStack(stack);
  const references = normal.ok ? outputReferences(normal.value) : [];
  return dependenciesOf(stack).map((to) => {
    const read = references.filter((each) => each.stack === to).map(({ output }) => output);
    return { namespace, from: name, to, outputs: [...new Set(read)].toSorted() };
  });
}

type NodeState = StackState | "Missing";

const classes: Readonly<Record<NodeState, string>> = {
  Failing: "fill:#fdd,stroke:#c00",
  Missing: "fill:#fdd,stroke:#c00,stroke-dasharray:4",
  Waiting: "fill:#ffd,stroke:#a80",
  Unknown: "fill:#eee,stroke:#888",
  Working: "fill:#def,stroke:#06c",
  Drifted: "fill:#ffd,stroke:#a80",
  Ready: "fill:#dfd,stroke:#080",
};

/** Arrows point from a Stack to the ones that wait for it. */
export function mermaid({ nodes, edges }: Graph): string {
  const ids = new Map(nodes.map(({ namespace, name }, at) => [`${namespace}/${name}`, `s${at}`]));
  const id = (namespace: string, name: string): string => ids.get(`${namespace}/${name}`) ?? "";
  const label = labels(nodes);
  const used = [...new Set(nodes.map(({ state }) => state))].toSorted();
  return [
    "flowchart LR",
    ...nodes.map((node) => `  ${id(node.namespace, node.name)}["${label(node)}<br/>${node.state}"]:::${node.state}`),
    ...edges.map(({ namespace, from, to, outputs }) => {
      const text = outputs.length > 0 ? `|${outputs.join(", ").replaceAll(/["|]/g, "'")}|` : "";
      return `  ${id(namespace, to)} -->${text} ${id(namespace, from)}`;
    }),
    ...used.map((state) => `  classDef ${state} ${classes[state]}`),
    "",
  ].join("\n");
}

export function dot({ nodes, edges }: Graph): string {
  const label = labels(nodes);
  return [
    "digraph stacks {",
    "  rankdir=LR;",
    "  node [shape=box];",
    ...nodes.map((node) => {
      const id = JSON.stringify(`${node.namespace}/${node.name}`);
      return `  ${id} [label=${JSON.stringify(`${label(node)}\n${node.state}`)}];`;
    }),
    ...edges.map(({ namespace, from, to, outputs }) => {
      const text = outputs.length > 0 ? ` [label=${JSON.stringify(outputs.join(", "))}]` : "";
      return `  ${JSON.stringify(`${namespace}/${to}`)} -> ${JSON.stringify(`${namespace}/${from}`)}${text};`;
    }),
    "}",
    "",
  ].join("\n");
}

/** With the namespace only if there are several. */
export function labels(nodes: Graph["nodes"]): (node: Graph["nodes"][number]) => string {
  const isOne = new Set(nodes.map(({ namespace }) => namespace)).size <= 1;
  return ({ namespace, name }) => (isOne ? name : `${namespace}/${name}`);
}
