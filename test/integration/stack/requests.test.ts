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
    // Before the Workspace is created, and before the Update; then to record the result. On a busy machine, one of these passes may
    // be repeated, because the store does not show what the one before wrote.
    const reads = ["token", "web-outputs"].map((name) => counted("get", "secrets", name));
    expect(reads.every((count) => count > 0)).toBe(true);
    expect(reads.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(4);
    // The Workspace is not read before it is applied. On a busy machine, another pass may apply it before the store shows it: the API
    // server rejects that, the Workspace is read, and applied again.
    const repeated = proxy.requests.filter((each) => each.resource === "workspaces" && each.status === 409).length;
    expect([counted("apply", "workspaces"), counted("get", "workspaces")]).toEqual([1 + 2 * repeated, 1 + repeated]);
  },
  testTimeoutMs,
);
