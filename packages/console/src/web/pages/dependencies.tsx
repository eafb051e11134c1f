/** Which Stacks need which: a graph, and the same as a tree. */
import { useMemo } from "preact/hooks";

import { Empty, PageTitle, Section, WatchNotice } from "../components/common.tsx";
import { Drawing, maxDrawn, type Box, type Line } from "../components/graph.tsx";
import { StateBadge, stateLooks } from "../components/icon.tsx";
import { NamespaceChooser } from "../components/namespace-chooser.tsx";
import { Tree, type TreeItem } from "../components/tree.tsx";
import { useFleet } from "../data/fleet.ts";
import { navigate, query, replaceQuery } from "../data/location.ts";
import { connected, dependencyGraph, type DependencyGraph } from "../lib/dependencies.ts";
import { distinct } from "../lib/fleet.ts";
import type { Graph } from "../lib/graph-layout.ts";
import { paths } from "../lib/routes.ts";

export function DependenciesPage() {
  const { stacks, needsNamespace } = useFleet();
  const chosen = query.value.get("namespace") ?? "";
  const namespaces = useMemo(
    () => distinct(stacks.items.map(({ metadata }) => metadata.namespace ?? "")),
    [stacks.items],
  );
  const graph = useMemo(() => {
    const items = stacks.items.filter(({ metadata }) => chosen === "" || metadata.namespace === chosen);
    return connected(dependencyGraph(items));
  }, [stacks.items, chosen]);
  const choose = (namespace: string): void =>
    replaceQuery(namespace === "" ? "" : `?namespace=${encodeURIComponent(namespace)}`);
  return (
    <>
      <PageTitle title="Dependencies">
        <p class="subtitle">
          {graph.nodes.length} Stacks, {graph.edges.length} dependencies
        </p>
      </PageTitle>
      <WatchNotice watched={stacks} what="Stacks" />
      {needsNamespace ? <NamespaceChooser onChoose={choose} /> : null}
      {namespaces.length > 1 ? (
        <form class="filters" onSubmit={(event) => event.preventDefault()}>
          <label>
            <span>Namespace</span>
            <select value={chosen} onChange={({ currentTarget }) => choose(currentTarget.value)}>
              <option value="">All</option>
              {namespaces.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </label>
        </form>
      ) : null}
      {graph.edges.length === 0 && stacks.state.kind === "synced" ? (
        <Empty title="No Stack depends on another.">
          <p>Prerequisites and outputs that a Stack reads from another appear here.</p>
        </Empty>
      ) : null}
      {graph.edges.length > 0 ? <GraphAndTree graph={graph} /> : null}
    </>
  );
}

function GraphAndTree({ graph }: { readonly graph: DependencyGraph }) {
  const drawing = useMemo(() => drawingOf(graph), [graph]);
  return (
    <>
      {graph.nodes.length > maxDrawn ? (
        <p class="muted">There are too many Stacks to draw: choose a namespace.</p>
      ) : (
        <Drawing label="Graph of dependencies" graph={drawing} />
      )}
      <Section title="As a list">
        <p class="muted">Below each Stack are those that wait for it.</p>
        <Tree label="Stacks and those that wait for them" items={treeOf(graph)} isCollapsible={false} />
      </Section>
    </>
  );
}

const drawingOf = ({ nodes, edges }: DependencyGraph): Graph<Box, Line> => ({
  nodes: nodes.map((node) => ({
    id: node.id,
    title: node.id,
    name: node.name,
    detail: node.state,
    ...stateLooks[node.state],
    onClick: () => navigate(paths.stack(node)),
  })),
  edges: edges.map(({ from, to, outputs }) => ({
    from,
    to,
    title: outputs.length > 0 ? `outputs ${outputs.join(", ")}` : "prerequisite",
  })),
});

/** From those that need nothing to those that need them. One that occurs several times is expanded once. */
function treeOf({ nodes, edges }: DependencyGraph): TreeItem[] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const expanded = new Set<string>();
  const itemOf = (id: string, prefix: string): TreeItem => {
    const node = byId.get(id);
    const isFirst = !expanded.has(id);
    expanded.add(id);
    const dependents = isFirst ? edges.filter(({ to }) => to === id).map(({ from }) => from) : [];
    return {
      id: `${prefix}>${id}`,
      label: node ? (
        <>
          <StateBadge state={node.state} /> <a href={paths.stack(node)}>{node.name}</a>{" "}
          <span class="muted">{isFirst ? node.namespace : "see above"}</span>
        </>
      ) : (
        id
      ),
      children: dependents.map((each) => itemOf(each, `${prefix}>${id}`)),
    };
  };
  const needing = new Set(edges.map(({ from }) => from));
  const roots = nodes.filter(({ id }) => !needing.has(id)).map(({ id }) => itemOf(id, ""));
  // Stacks in a cycle have no root.
  const rest = nodes.filter(({ id }) => !expanded.has(id)).map(({ id }) => (expanded.has(id) ? [] : [itemOf(id, "")]));
  return [...roots, ...rest.flat()];
}
