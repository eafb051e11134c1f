/** The resources of a stack as a tree, by their parents. Pure. */
import { urnName, urnType, type RecordedResource } from "@pko/records/browser";

export interface ResourceNode {
  readonly urn: string;
  readonly name: string;
  readonly type: string;
  readonly id: string | undefined;
  readonly dependencies: readonly string[];
  readonly children: readonly ResourceNode[];
}

/** A resource whose parent is unknown is a root. Providers are left out: the engine creates them. */
export function resourceTree(resources: readonly RecordedResource[]): ResourceNode[] {
  const shown = resources.filter(({ urn }) => !urnType(urn).startsWith("pulumi:providers:"));
  const known = new Set(shown.map(({ urn }) => urn));
  const children = new Map<string, RecordedResource[]>();
  for (const resource of shown) {
    const parent = resource.parent !== undefined && known.has(resource.parent) ? resource.parent : "";
    children.set(parent, [...(children.get(parent) ?? []), resource]);
  }
  return nodesUnder("", children, new Set());
}

function nodesUnder(
  parent: string,
  children: ReadonlyMap<string, readonly RecordedResource[]>,
  seen: ReadonlySet<string>,
): ResourceNode[] {
  const own = (children.get(parent) ?? []).filter(({ urn }) => !seen.has(urn));
  const below = new Set([...seen, ...own.map(({ urn }) => urn)]);
  return own
    .map(({ urn, id, dependencies = [] }): ResourceNode => ({
      urn,
      name: urnName(urn),
      type: urnType(urn),
      id,
      dependencies,
      children: nodesUnder(urn, children, below),
    }))
    .toSorted((a, b) => a.type.localeCompare(b.type) || a.name.localeCompare(b.name));
}

export const countNodes = (nodes: readonly ResourceNode[]): number =>
  nodes.reduce((sum, node) => sum + 1 + countNodes(node.children), 0);
