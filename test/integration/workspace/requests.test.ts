/** How many requests the creation of a Workspace costs its controller. `bench/parts/cost` measures the whole operator. */
import { expect, test } from "bun:test";

import { complete, testTimeoutMs, WorkspaceScene } from "./scene.ts";

test(
  "a creation and an update write the status at most three times, and read the certificate at most twice",
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
    // On a slow machine, it also reports that the pod starts.
    expect([2, 3]).toContain(statuses.length);
    // Its name is checked before it is written, and again if the store does not show the StatefulSet yet.
    const certificates = scene.requests("get", "secrets").filter(({ name }) => name === "web-workspace-tls");
    expect([1, 2]).toContain(certificates.length);
    for (const resource of ["services", "statefulsets"]) {
      // The third is for the write that follows, which finds that the object exists.
      expect([1, 2, 3]).toContain(scene.requests("get", resource).length);
    }
  },
  testTimeoutMs,
);
