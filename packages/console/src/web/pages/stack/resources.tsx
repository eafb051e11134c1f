/** The resources of a Stack after its last recorded run, as a tree. */
import type { UpdateRecord } from "@pko/api/browser";

import { Empty, Loading, WatchNotice } from "../../components/common.tsx";
import { Tree, type TreeItem } from "../../components/tree.tsx";
import { useContent } from "../../data/record-content.ts";
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
      <Tree label="Resources" items={nodes.map(itemOf)} />
    </>
  );
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
    </>
  ),
  children: node.children.map(itemOf),
});
