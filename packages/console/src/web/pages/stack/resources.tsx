/** The resources of a Stack after its last recorded run, as a tree and as a graph. */
import type { UpdateRecord } from "@pko/api/browser";
import { urnName, type RecordedResource } from "@pko/records/browser";
import { useMemo } from "preact/hooks";

import { Empty, Loading, Section, WatchNotice } from "../../components/common.tsx";
import { Drawing, maxDrawn, type Box, type Line } from "../../components/graph.tsx";
import { Tree, type TreeItem } from "../../components/tree.tsx";
import { query, replaceQuery } from "../../data/location.ts";
import { useContent } from "../../data/record-content.ts";
import type { Graph } from "../../lib/graph-layout.ts";
import { resourceGraph } from "../../lib/resource-graph.ts";
import { countNodes, resourceTree, type ResourceNode } from "../../lib/resource-tree.ts";
import type { StackView } from "./index.tsx";

export function ResourcesTab({ records }: StackView) {
  const record = latestWithResources(records.items);
  const content = useContent(record).value;
  if (!record) {
    return (
      <>
        <WatchNotice watched={records} what="the records of its runs" />
        {records.state.kind === "synced" ? (
          <Empty title="No run has been recorded yet.">
            <p>The resources appear here after the next update.</p>
          </Empty>
        ) : null}
      </>
    );
  }
  if (content === "loading") return <Loading what="the resources" />;
  const nodes = resourceTree(content?.resources ?? []);
  if (nodes.length === 0) return <Empty title="The stack has no resources." />;
  const omitted = content?.omitted.resources ?? 0;
  return (
    <>
      <p class="muted">
        {countNodes(nodes)} resources after Update {record.record.updateName}
        {omitted > 0 ? `; ${omitted} more did not fit into its record` : ""}
      </p>
      <GraphSection resources={content?.resources ?? []} />
      <Section title="Tree">
        <p class="muted">Below each resource are its children.</p>
        <Tree label="Resources" items={nodes.map(itemOf)} />
      </Section>
    </>
  );
}

/** Drawn on request only: whoever looks for one resource needs the tree. The choice is part of the address. */
function GraphSection({ resources }: { readonly resources: readonly RecordedResource[] }) {
  const isOpen = query.value.get("view") === "graph";
  return (
    <>
      <p class="toolbar">
        <label class="check">
          <input type="checkbox" checked={isOpen} onChange={() => replaceQuery(isOpen ? "" : "?view=graph")} /> Draw the
          graph
        </label>
      </p>
      {isOpen ? <ResourceDrawing resources={resources} /> : null}
    </>
  );
}

function ResourceDrawing({ resources }: { readonly resources: readonly RecordedResource[] }) {
  const graph = useMemo(() => drawingOf(resources), [resources]);
  const count = graph.nodes.length;
  if (count > maxDrawn) {
    return (
      <p class="muted">
        {count} resources are too many to draw: at most {maxDrawn} are. The tree shows all.
      </p>
    );
  }
  return (
    <Section title="Graph">
      <p class="muted">Arrows lead to what needs a resource; dashed ones lead from a parent to its children.</p>
      <Drawing label="Graph of resources" graph={graph} />
    </Section>
  );
}

function drawingOf(resources: readonly RecordedResource[]): Graph<Box, Line> {
  const { nodes, edges } = resourceGraph(resources);
  return {
    nodes: nodes.map(({ id, name, type }) => ({ id, title: id, name, detail: type, tone: "muted" })),
    edges: edges.map(({ from, to, kind }) => ({ from, to, title: kind, isDashed: kind === "parent" })),
  };
}

/** A failed or interrupted run has changed resources, too; a preview has not. */
function latestWithResources(records: readonly UpdateRecord[]): UpdateRecord | undefined {
  const changing = records.filter(({ record }) => record.content !== undefined && record.type !== "preview");
  return changing.toSorted((a, b) => b.record.endTime.localeCompare(a.record.endTime))[0];
}

const itemOf = (node: ResourceNode): TreeItem => ({
  id: node.urn,
  label: (
    <>
      <strong>{node.name}</strong> <span class="muted">{node.type}</span>
      {node.id === undefined ? null : <code class="resource-id">{node.id}</code>}
      {node.dependencies.length === 0 ? null : (
        <span class="muted"> needs {node.dependencies.map(urnName).join(", ")}</span>
      )}
    </>
  ),
  children: node.children.map(itemOf),
});
