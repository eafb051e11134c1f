/** The graph of Stacks as SVG: layers from left to right, and a curve for each dependency. Pure. */
import type { Graph } from "./documents.ts";
import { width } from "./output/wrap.ts";

type Node = Graph["nodes"][number];

interface Placed {
  readonly node: Node;
  readonly label: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

const size = { height: 44, gapX: 130, gapY: 22, margin: 16, character: 8, padding: 24 } as const;

const colors: Readonly<Record<Node["state"], readonly [fill: string, stroke: string]>> = {
  Failing: ["#fdd", "#c00"],
  Missing: ["#fdd", "#c00"],
  Waiting: ["#ffd", "#a80"],
  Unknown: ["#eee", "#888"],
  Working: ["#def", "#06c"],
  Drifted: ["#ffd", "#a80"],
  Ready: ["#dfd", "#080"],
};

const keyOf = (namespace: string, name: string): string => `${namespace}/${name}`;

/** `label` names a node. */
export function svg(graph: Graph, label: (node: Node) => string): string {
  const placed = place(graph, label);
  const all = [...placed.values()];
  const right = Math.max(0, ...all.map(({ x, width: w }) => x + w)) + size.margin;
  const bottom = Math.max(0, ...all.map(({ y }) => y + size.height)) + size.margin;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${right} ${bottom}" width="${right}" height="${bottom}" font-family="sans-serif" font-size="13">`,
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="#666"/></marker></defs>',
    ...graph.edges.map((edge) => edgeText(edge, placed)),
    ...all.map(nodeText),
    "</svg>",
    "",
  ].join("\n");
}

/** A Stack is to the right of everything that it needs. A cycle ends where it started. */
export function layersOf({ nodes, edges }: Graph): Node[][] {
  const needs = new Map<string, string[]>();
  for (const { namespace, from, to } of edges) {
    const key = keyOf(namespace, from);
    needs.set(key, [...(needs.get(key) ?? []), keyOf(namespace, to)]);
  }
  const depths = new Map<string, number>();
  const depthOf = (key: string, path: ReadonlySet<string>): number => {
    const known = depths.get(key);
    if (known !== undefined) return known;
    const inner = new Set([...path, key]);
    const below = (needs.get(key) ?? []).filter((each) => !inner.has(each)).map((each) => depthOf(each, inner));
    const depth = Math.max(-1, ...below) + 1;
    depths.set(key, depth);
    return depth;
  };
  const layers: Node[][] = [];
  for (const node of nodes) (layers[depthOf(keyOf(node.namespace, node.name), new Set())] ??= []).push(node);
  return Array.from(layers, (layer) => layer ?? []);
}

function place(graph: Graph, label: (node: Node) => string): Map<string, Placed> {
  const placed = new Map<string, Placed>();
  let x: number = size.margin;
  for (const layer of layersOf(graph)) {
    const widths = layer.map((node) => width(label(node)) * size.character + size.padding);
    const widest = Math.max(0, ...widths);
    for (const [at, node] of ordered(layer, graph, placed).entries()) {
      const y = size.margin + at * (size.height + size.gapY);
      placed.set(keyOf(node.namespace, node.name), { node, label: label(node), x, y, width: widest });
    }
    x += widest + size.gapX;
  }
  return placed;
}

/** Beside what they need, which makes most crossings unnecessary. */
function ordered(layer: readonly Node[], { edges }: Graph, placed: ReadonlyMap<string, Placed>): Node[] {
  const height = ({ namespace, name }: Node): number => {
    const ys = edges
      .filter((edge) => edge.namespace === namespace && edge.from === name)
      .flatMap((edge) => placed.get(keyOf(namespace, edge.to))?.y ?? []);
    return ys.length === 0 ? 0 : ys.reduce((sum, y) => sum + y, 0) / ys.length;
  };
  return layer.toSorted(
    (a, b) => height(a) - height(b) || keyOf(a.namespace, a.name).localeCompare(keyOf(b.namespace, b.name)),
  );
}

function nodeText({ node, label, x, y, width: w }: Placed): string {
  const [fill, stroke] = colors[node.state];
  const dashed = node.state === "Missing" ? ' stroke-dasharray="4"' : "";
  const middle = x + w / 2;
  return [
    `<g><rect x="${x}" y="${y}" width="${w}" height="${size.height}" rx="6" fill="${fill}" stroke="${stroke}"${dashed}/>`,
    `<text x="${middle}" y="${y + 19}" text-anchor="middle" font-weight="bold">${escaped(label)}</text>`,
    `<text x="${middle}" y="${y + 35}" text-anchor="middle" fill="#555">${node.state}</text></g>`,
  ].join("");
}

function edgeText(
  { namespace, from, to, outputs }: Graph["edges"][number],
  placed: ReadonlyMap<string, Placed>,
): string {
  const [start, end] = [placed.get(keyOf(namespace, to)), placed.get(keyOf(namespace, from))];
  if (!start || !end) return "";
  const [x1, y1] = [start.x + start.width, start.y + size.height / 2];
  const [x2, y2] = [end.x, end.y + size.height / 2];
  const bend = Math.max(40, Math.abs(x2 - x1) / 2);
  const line = `<path d="M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}" fill="none" stroke="#666" marker-end="url(#arrow)"/>`;
  if (outputs.length === 0) return line;
  const text = `<text x="${(x1 + x2) / 2}" y="${(y1 + y2) / 2 - 5}" text-anchor="middle" fill="#555" font-size="11">${escaped(outputs.join(", "))}</text>`;
  return `${line}${text}`;
}

const escapes: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
export const escaped = (value: string): string => value.replaceAll(/[&<>"]/g, (character) => escapes[character] ?? "");
