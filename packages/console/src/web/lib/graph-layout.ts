/**
 * A layered layout, from left to right: a node is to the right of all that it needs. A layer is ordered by the barycenter
 * of its neighbors, which keeps the number of crossing lines low for graphs of the size that people can read. Pure.
 */

/** `from` needs `to`. */
interface Edge {
  readonly from: string;
  readonly to: string;
}

interface Node {
  readonly id: string;
}

export interface Graph<N extends Node = Node, E extends Edge = Edge> {
  readonly nodes: readonly N[];
  readonly edges: readonly E[];
}

export interface PlacedNode<N> {
  readonly node: N;
  readonly x: number;
  readonly y: number;
}

export interface PlacedEdge<E> {
  readonly edge: E;
  /** The data of an SVG path, from what is needed to what needs it. */
  readonly path: string;
}

export interface Layout<N, E> {
  readonly nodes: readonly PlacedNode<N>[];
  readonly edges: readonly PlacedEdge<E>[];
  readonly width: number;
  readonly height: number;
}

export const nodeSize = { width: 176, height: 48 } as const;
const space = { x: 72, y: 16 } as const;
const sweeps = 4;

export function layoutGraph<N extends Node, E extends Edge>({ nodes, edges }: Graph<N, E>): Layout<N, E> {
  const depth = depths({ nodes, edges });
  const layers: string[][] = [];
  for (const { id } of nodes) (layers[depth.get(id) ?? 0] ??= []).push(id);
  const ordered = orderLayers(
    layers.map((layer) => layer ?? []),
    edges,
  );
  const tallest = Math.max(0, ...ordered.map((layer) => layer.length));
  const height = tallest * (nodeSize.height + space.y);
  const position = new Map<string, { x: number; y: number }>();
  ordered.forEach((layer, column) => {
    const top = (height - layer.length * (nodeSize.height + space.y)) / 2;
    layer.forEach((id, row) => {
      const y = top + row * (nodeSize.height + space.y) + space.y / 2;
      position.set(id, { x: column * (nodeSize.width + space.x), y });
    });
  });
  const at = (id: string): { x: number; y: number } => position.get(id) ?? { x: 0, y: 0 };
  return {
    nodes: nodes.map((node) => ({ node, ...at(node.id) })),
    edges: edges.map((edge) => ({ edge, path: curve(at(edge.to), at(edge.from)) })),
    width: Math.max(0, ordered.length * (nodeSize.width + space.x) - space.x),
    height,
  };
}

/** The length of the longest path to what a node needs. Nodes in a cycle stay where the search entered it. */
function depths({ nodes, edges }: Graph): Map<string, number> {
  const needs = new Map<string, string[]>();
  for (const { from, to } of edges) needs.set(from, [...(needs.get(from) ?? []), to]);
  const depth = new Map<string, number>();
  const visit = (id: string, path: ReadonlySet<string>): number => {
    const known = depth.get(id);
    if (known !== undefined) return known;
    const below = (needs.get(id) ?? []).filter((each) => !path.has(each));
    const own = Math.max(-1, ...below.map((each) => visit(each, new Set([...path, id])))) + 1;
    depth.set(id, own);
    return own;
  };
  for (const { id } of nodes) visit(id, new Set([id]));
  return depth;
}

function orderLayers(layers: readonly string[][], edges: readonly Edge[]): string[][] {
  const neighbors = new Map<string, string[]>();
  for (const { from, to } of edges) {
    neighbors.set(from, [...(neighbors.get(from) ?? []), to]);
    neighbors.set(to, [...(neighbors.get(to) ?? []), from]);
  }
  let ordered = layers.map((layer) => layer.toSorted((a, b) => a.localeCompare(b)));
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const rank = new Map(ordered.flatMap((layer) => layer.map((id, at) => [id, at / layer.length] as const)));
    const center = (id: string): number => {
      const ranks = (neighbors.get(id) ?? []).map((each) => rank.get(each) ?? 0);
      return ranks.length === 0 ? (rank.get(id) ?? 0) : ranks.reduce((sum, each) => sum + each, 0) / ranks.length;
    };
    ordered = ordered.map((layer) => layer.toSorted((a, b) => center(a) - center(b) || a.localeCompare(b)));
  }
  return ordered;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

function curve(start: Point, end: Point): string {
  const [x1, y1] = [start.x + nodeSize.width, start.y + nodeSize.height / 2];
  const [x2, y2] = [end.x, end.y + nodeSize.height / 2];
  const bend = Math.max(24, Math.abs(x2 - x1) / 2);
  return `M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
}
