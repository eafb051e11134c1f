/** A drawing of a graph, for the eye and the mouse. Screen readers and the keyboard use a tree, which says the same. */
import { useMemo } from "preact/hooks";

import { layoutGraph, nodeSize, type Graph } from "../lib/graph-layout.ts";
import { Icon, type IconName, type Tone } from "./icon.tsx";

/** Larger drawings help nobody; the tree shows all. */
export const maxDrawn = 200;

export interface Box {
  readonly id: string;
  readonly title: string;
  readonly name: string;
  readonly detail: string;
  /** Beside the detail, if that is a state. */
  readonly icon?: IconName;
  readonly tone: Tone;
  readonly onClick?: () => void;
}

export interface Line {
  readonly from: string;
  readonly to: string;
  readonly title: string;
  readonly isDashed?: boolean;
}

interface Props {
  readonly label: string;
  readonly graph: Graph<Box, Line>;
}

export function Drawing({ label, graph }: Props) {
  const { width, height, nodes, edges } = useMemo(() => layoutGraph(graph), [graph]);
  return (
    <div class="graph-frame" role="region" aria-label={label} tabIndex={0}>
      <svg width={width + 16} height={height + 16} viewBox={`-8 -8 ${width + 16} ${height + 16}`} aria-hidden="true">
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
            <path d="M0 0 8 4 0 8Z" class="graph-arrow" />
          </marker>
        </defs>
        {edges.map(({ edge: { from, to, title, isDashed }, path }) => (
          <path
            key={`${from} ${to}`}
            class={isDashed ? "graph-edge graph-dashed" : "graph-edge"}
            d={path}
            marker-end="url(#arrow)"
          >
            <title>{title}</title>
          </path>
        ))}
        {nodes.map(({ node, x, y }) => (
          <BoxDrawing key={node.id} box={node} x={x} y={y} />
        ))}
      </svg>
    </div>
  );
}

function BoxDrawing({ box, x, y }: { readonly box: Box; readonly x: number; readonly y: number }) {
  const { title, name, detail, icon, tone, onClick } = box;
  const look = onClick ? "graph-node graph-link" : "graph-node";
  return (
    <g transform={`translate(${x} ${y})`} class={`${look} tone-${tone}`} {...(onClick && { onClick })}>
      <title>{title}</title>
      <rect width={nodeSize.width} height={nodeSize.height} rx="6" />
      <text x="12" y="20" class="graph-name">
        {shortened(name)}
      </text>
      {icon === undefined ? null : <Icon name={icon} x={11} y={26} />}
      <text x={icon === undefined ? 12 : 31} y="38" class="graph-state">
        {shortened(detail)}
      </text>
    </g>
  );
}

const maxChars = 22;
const shortened = (text: string): string => (text.length > maxChars ? `${text.slice(0, maxChars - 1)}…` : text);
