/** Secrets and ConfigMaps change under a Stack that is at rest. */
import { expect, test } from "bun:test";
import { builtin, type Client } from "@pko/kube";
import { waitFor } from "@pko/testkit";

import { patience, Stage } from "./harness.ts";

/** The stage's client, for the operator: it counts how often each object is asked for. */
function counting(client: Client): { client: Client; questions: (name: string) => number } {
  const counts = new Map<string, number>();
  const find: Client["find"] = async (resource, ref, options) => {
    const found = await client.find(resource, ref, options);
    counts.set(ref.name, (counts.get(ref.name) ?? 0) + 1);
    return found;
  };
  return { client: { ...client, find }, questions: (name) => counts.get(name) ?? 0 };
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
  "a value that the configuration takes is followed by one update; the rest of its object, and the environment, by none",
  async () => {
    await using stage = await Stage.set("empty");
    const { client, questions } = counting(stage.client);
    /** Asked for twice: a pass that the first answer leads to has begun by the second. */
    const isNoticed = async (name: string): Promise<void> => {
      for (let count = 0; count < 2; count++) {
        const before = questions(name);
        stage.jump(70_000);
        await waitFor(() => questions(name) > before, { what: `${name} is asked for`, timeoutMs: 30_000 });
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

    // Were these a reason to update, the runs below would be one more.
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
    await stage.becomes("web", "updated again", () => stage.runs.length > 2);
    await stage.isReady("web");

    await stage.client.delete(builtin.secrets, { namespace: stage.namespace, name: "database" });
    await isNoticed("database");
    await stage.isReady("web");
    expect(stage.runs).toHaveLength(3);
  },
  patience,
);
