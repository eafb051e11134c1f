/** The resources of a stack as a graph, by their parents and dependencies. Pure. */
import { urnName, urnType, type RecordedResource } from "@pko/records/browser";

export interface ResourceGraphNode {
  readonly id: string;
  readonly name: string;
  readonly type: string;
}

/** `from` is a child of `to`, or depends on it. */
export interface ResourceGraphEdge {
  readonly from: string;
  readonly to: string;
  readonly kind: "parent" | "dependency";
}

export interface ResourceGraph {
  readonly nodes: readonly ResourceGraphNode[];
  readonly edges: readonly ResourceGraphEdge[];
}

/** Without the stack itself, to which a line would lead from almost every resource, and without providers. */
export function resourceGraph(resources: readonly RecordedResource[]): ResourceGraph {
  const shown = new Map(resources.filter(isDrawn).map((resource) => [resource.urn, resource]));
  return {
    nodes: [...shown.keys()].map((urn) => ({ id: urn, name: urnName(urn), type: urnType(urn) })),
    edges: [...shown.values()].flatMap((resource) => edgesFrom(resource).filter(({ to }) => shown.has(to))),
  };
}

function isDrawn({ urn }: RecordedResource): boolean {
  const type = urnType(urn);
  return type !== "pulumi:pulumi:Stack" && !type.startsWith("pulumi:providers:");
}

/** One line for each pair: a child that also depends on its parent has one. */
function edgesFrom({ urn, parent, dependencies = [] }: RecordedResource): ResourceGraphEdge[] {
  const needed = [...new Set(dependencies)].filter((to) => to !== parent && to !== urn);
  return [
    ...(parent === undefined ? [] : [{ from: urn, to: parent, kind: "parent" } as const]),
    ...needed.map((to) => ({ from: urn, to, kind: "dependency" }) as const),
  ];
}
