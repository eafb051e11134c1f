/** Secrets and ConfigMaps of an idle Stack change. */
import { expect, test } from "bun:test";
import { builtin, type Client } from "@pko/kube";
import { waitFor } from "@pko/testkit";

import { testTimeoutMs, StackScene } from "./scene.ts";

/** A client that counts how often each object is read. */
function counting(client: Client): { client: Client; reads: (name: string) => number } {
  const counts = new Map<string, number>();
  const find: Client["find"] = async (resource, ref, options) => {
    const found = await client.find(resource, ref, options);
    counts.set(ref.name, (counts.get(ref.name) ?? 0) + 1);
    return found;
  };
  return { client: { ...client, find }, reads: (name) => counts.get(name) ?? 0 };
}

async function write(
  scene: StackScene,
  kind: "Secret" | "ConfigMap",
  contents: Record<string, Record<string, string>>,
) {
  for (const [name, data] of Object.entries(contents)) {
    const object = { apiVersion: "v1", kind, metadata: { name, namespace: scene.namespace } };
    const options = { fieldManager: "test" };
    await (kind === "ConfigMap"
      ? scene.client.apply(builtin.configMaps, { ...object, data }, options)
      : scene.client.apply(builtin.secrets, { ...object, stringData: data }, options));
  }
}

test(
  "a changed configuration value triggers one update; other keys of its object, and the environment, trigger none",
  async () => {
    await using scene = await StackScene.open("without operator");
    const { client, reads } = counting(scene.client);
    /** Read twice: a reconcile that follows from the first read has started by the second. */
    const isNoticed = async (name: string): Promise<void> => {
      for (let count = 0; count < 2; count++) {
        const before = reads(name);
        scene.jump(70_000);
        await waitFor(() => reads(name) > before, { what: `${name} to be read`, timeoutMs: 30_000 });
      }
    };
    scene.start({ client });
    await scene.program("program");
    await write(scene, "Secret", {
      database: { password: "canary-one", other: "a" },
      token: { value: "canary-token" },
    });
    await write(scene, "ConfigMap", { sizes: { small: "1" } });
    await scene.stack("web", {
      secretsRef: { password: { type: "Secret", secret: { name: "database", key: "password" } } },
      configRef: { size: { name: "sizes", key: "small" } },
      envRefs: { PULUMI_ACCESS_TOKEN: { type: "Secret", secret: { name: "token", key: "value" } } },
    });
    await scene.isReady("web");
    expect(scene.runs).toHaveLength(1);

    // If these triggered an update, there would be one more run below.
    await write(scene, "Secret", {
      database: { password: "canary-one", other: "b" },
      token: { value: "canary-other" },
    });
    await isNoticed("database");

    await write(scene, "Secret", { database: { password: "canary-two", other: "b" } });
    scene.jump(70_000);
    await scene.becomes("web", "updated", () => scene.runs.length > 1);
    expect(JSON.stringify(await scene.isReady("web"))).not.toContain("canary");

    await write(scene, "ConfigMap", { sizes: { small: "2" } });
    scene.jump(70_000);
    await scene.becomes("web", "updated a second time", () => scene.runs.length > 2);
    await scene.isReady("web");

    await scene.client.delete(builtin.secrets, { namespace: scene.namespace, name: "database" });
    await isNoticed("database");
    await scene.isReady("web");
    expect(scene.runs).toHaveLength(3);
  },
  testTimeoutMs,
);
