import { expect, test } from "bun:test";
import { updateKind, workspaceKind, type Condition, type Update, type Workspace } from "@pko/api";
import { metricsRegistry } from "@pko/kube";

import { exposeLostNodes } from "./lost-node-metrics.ts";

const stalled = (reason: string): { conditions: Condition[] } => ({
  conditions: [{ type: "Stalled", status: "True", reason, message: "", lastTransitionTime: "" }],
});
const workspace = (name: string, reason: string): Workspace => ({
  ...workspaceKind,
  metadata: { namespace: "team", name },
  status: stalled(reason),
});
const update = (name: string, workspaceName: string): Update => ({
  ...updateKind,
  metadata: { namespace: "team", name },
  spec: { workspaceName },
  status: stalled("NodeLost"),
});

test("each Workspace whose pod is on a lost node has a series, whether or not an Update runs there", () => {
  const registry = metricsRegistry();
  const present = [update("web-1", "web"), update("web-2", "web")];
  exposeLostNodes(registry, {
    updates: { list: () => present },
    workspaces: { list: () => [workspace("idle", "NodeLost"), workspace("broken", "InitializationFailed")] },
  });
  const series = () => registry.expose().match(/^workspaces_node_lost\{.*$/gm) ?? [];
  expect(series().toSorted()).toEqual([
    'workspaces_node_lost{namespace="team",name="idle"} 1',
    'workspaces_node_lost{namespace="team",name="web"} 1',
  ]);
  present.length = 0;
  expect(series()).toEqual(['workspaces_node_lost{namespace="team",name="idle"} 1']);
});
