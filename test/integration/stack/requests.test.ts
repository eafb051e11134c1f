/** How many requests the creation of a Stack costs its controller. `bench/parts/cost` measures the whole operator. */
import { expect, test } from "bun:test";
import { builtin } from "@pko/kube";
import { updates } from "@pko/operator";
import { waitFor } from "@pko/testkit";

import { StackScene, testTimeoutMs } from "./scene.ts";

test(
  "a creation writes the status at most four times, and reads each Secret once per decision, not once per pass",
  async () => {
    await using scene = await StackScene.open("without operator");
    await scene.program("program");
    const secret = { apiVersion: "v1", kind: "Secret", metadata: scene.ref("token"), stringData: { key: "x" } };
    await scene.client.create(builtin.secrets, secret);
    const { proxy, client } = await scene.proxy();
    scene.start({ client });
    scene.simulator.script.update = () => ({ end: "succeeded", outputs: { text: "one" } });
    const reference = { type: "Secret", secret: { name: "token", key: "key" } } as const;
    await scene.stack("web", { envRefs: { TOKEN: reference } });
    await scene.isReady("web");
    const areReleased = async (): Promise<boolean> =>
      (await scene.client.list(updates, { namespace: scene.namespace })).items.every(
        ({ metadata }) => metadata.finalizers === undefined,
      );
    await waitFor(areReleased, { what: "the Update to have no finalizer" });

    const counted = (verb: string, resource: string, name?: string): number =>
      proxy.requests.filter((each) => each.verb === verb && each.resource === resource && (!name || each.name === name))
        .length;
    const statuses = proxy.requests.filter(
      (each) => each.resource === "stacks" && each.subresource === "status" && each.status !== 409,
    );
    expect(statuses.length).toBeLessThanOrEqual(4);
    // On a busy machine, a pass may be repeated, because the store does not show what the one before wrote. The API server rejects that.
    const conflicts = (...resources: readonly string[]): number =>
      proxy.requests.filter(({ resource, status }) => status === 409 && resources.includes(resource)).length;
    // Before the Workspace is created, and before the Update; then to record the result.
    const reads = ["token", "web-outputs"].map((name) => counted("get", "secrets", name));
    expect(reads.every((count) => count > 0)).toBe(true);
    expect(reads.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(
      4 + conflicts("stacks", "workspaces", "updates", "secrets"),
    );
    // The Workspace is read before the Update is created, not before it is applied. An apply that is rejected is followed by a read and
    // another apply, which is rejected, too, if the Workspace's status has changed in between.
    expect(counted("get", "workspaces")).toBeLessThanOrEqual(1 + conflicts("workspaces", "updates"));
    expect(counted("apply", "workspaces")).toBeLessThanOrEqual(1 + 2 * conflicts("workspaces"));
  },
  testTimeoutMs,
);
