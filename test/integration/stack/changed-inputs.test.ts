/** Secrets and ConfigMaps of an idle Stack change. */
import { expect, test } from "bun:test";
import { builtin, type Client } from "@pko/kube";
import { waitFor } from "@pko/testkit";

import { testTimeoutMs, Stage } from "./harness.ts";

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

async function write(stage: Stage, kind: "Secret" | "ConfigMap", contents: Record<string, Record<string, string>>) {
  for (const [name, data] of Object.entries(contents)) {
    const object = { apiVersion: "v1", kind, metadata: { name, namespace: stage.namespace } };
    const options = { fieldManager: "test" };
    await (kind === "ConfigMap"
      ? stage.client.apply(builtin.configMaps, { ...object, data }, options)
      : stage.client.apply(builtin.secrets, { ...object, stringData: data }, options));
  }
}

test(
  "a changed configuration value triggers one update; other keys of its object, and the environment, trigger none",
  async () => {
    await using stage = await Stage.set("empty");
    const { client, reads } = counting(stage.client);
    /** Read twice: a reconcile that follows from the first read has started by the second. */
    const isNoticed = async (name: string): Promise<void> => {
      for (let count = 0; count < 2; count++) {
        const before = reads(name);
        stage.jump(70_000);
        await waitFor(() => reads(name) > before, { what: `${name} to be read`, timeoutMs: 30_000 });
      }
    };
    stage.start({ client });
    await stage.program("program");
    await write(stage, "Secret", {
      database: { password: "canary-one", other: "a" },
      token: { value: "canary-token" },
    });
    await write(stage, "ConfigMap", { sizes: { small: "1" } });
    await stage.stack("web", {
      secretsRef: { password: { type: "Secret", secret: { name: "database", key: "password" } } },
      configRef: { size: { name: "sizes", key: "small" } },
      envRefs: { PULUMI_ACCESS_TOKEN: { type: "Secret", secret: { name: "token", key: "value" } } },
    });
    await stage.isReady("web");
    expect(stage.runs).toHaveLength(1);

    // If these triggered an update, there would be one more run below.
    await write(stage, "Secret", {
      database: { password: "canary-one", other: "b" },
      token: { value: "canary-other" },
    });
    await isNoticed("database");

    await write(stage, "Secret", { database: { password: "canary-two", other: "b" } });
    stage.jump(70_000);
    await stage.becomes("web", "updated", () => stage.runs.length > 1);
    expect(JSON.stringify(await stage.isReady("web"))).not.toContain("canary");

    await write(stage, "ConfigMap", { sizes: { small: "2" } });
    stage.jump(70_000);
    await stage.becomes("web", "updated a second time", () => stage.runs.length > 2);
    await stage.isReady("web");

    await stage.client.delete(builtin.secrets, { namespace: stage.namespace, name: "database" });
    await isNoticed("database");
    await stage.isReady("web");
    expect(stage.runs).toHaveLength(3);
  },
  testTimeoutMs,
);
