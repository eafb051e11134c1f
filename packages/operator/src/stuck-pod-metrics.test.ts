import { expect, test } from "bun:test";
import { updateKind, workspaceKind, type Condition, type Update, type Workspace } from "@pko/api";
import { metricsRegistry } from "@pko/kube";

import { exposeStuckPods } from "./stuck-pod-metrics.ts";

const stalled = (reason: string): { conditions: Condition[] } => ({
  conditions: [{ type: "Stalled", status: "True", reason, message: "", lastTransitionTime: "" }],
});
const workspace = (name: string, reason: string): Workspace => ({
  ...workspaceKind,
  metadata: { namespace: "team", name },
  status: stalled(reason),
});
const update = (name: string, workspaceName: string, reason = "NodeLost"): Update => ({
  ...updateKind,
  metadata: { namespace: "team", name },
  spec: { workspaceName },
  status: stalled(reason),
});

test("each Workspace whose pod is on a lost node has a series, whether or not an Update runs there", () => {
  const registry = metricsRegistry();
  const present = [update("web-1", "web"), update("web-2", "web")];
  exposeStuckPods(registry, {
    updates: { active: () => present },
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

test("each Workspace with a run that could not be stopped has a series, also without a Stack", () => {
  const registry = metricsRegistry();
  const present = [update("mine", "tools", "NotStopped"), update("web-1", "web")];
  exposeStuckPods(registry, { updates: { active: () => present }, workspaces: { list: () => [] } });
  const series = () => registry.expose().match(/^workspaces_update_not_stopped\{.*$/gm) ?? [];
  expect(series()).toEqual(['workspaces_update_not_stopped{namespace="team",name="tools"} 1']);
  present.length = 0;
  expect(series()).toEqual([]);
});
