/** How many requests the creation of a Workspace costs its controller. `bench/parts/cost` measures the whole operator. */
import { expect, test } from "bun:test";

import { complete, testTimeoutMs, WorkspaceScene } from "./scene.ts";

test(
  "a creation and an update write the status twice, and read the certificate once",
  async () => {
    await using scene = await WorkspaceScene.open({}, { proxied: () => undefined });
    await scene.ready("web", { local: { dir: "/app" }, stacks: [{ name: "dev" }] });
    await scene.createUpdate("run", "web");
    await scene.reconciled("web");
    await scene.setUpdate("run", { podUid: "pod" });
    await scene.reconciled("web");
    await scene.setUpdate("run", complete);
    await scene.reconciled("web");

    const statuses = scene.requests("patch", "workspaces").filter(({ subresource }) => subresource === "status");
    expect(statuses).toHaveLength(2);
    // Its name is checked before it is written.
    expect(scene.requests("get", "secrets").filter(({ name }) => name === "web-workspace-tls")).toHaveLength(1);
    for (const resource of ["services", "statefulsets"]) {
      expect([resource, scene.requests("get", resource).length]).toEqual([resource, 1]);
    }
  },
  testTimeoutMs,
);
