/** Configuration of every form and from every source; errors are reported, and the Stack recovers once they are fixed. */
import { beforeAll, describe, expect, test } from "bun:test";

import { waitFor } from "@pko/testkit";

import {
  applyTo,
  at,
  fromSecret,
  isReady,
  kubectl,
  literal,
  localTest,
  newConfigMap,
  newProgram,
  newSecret,
  newStack,
  onFileBackend,
  podUid,
  readOutput,
  readyMessage,
  stackUntil,
  stalledReason,
  useScene,
} from "../harness.ts";
import { echoProject, type Given } from "./echo.ts";
import { oldVersion, publishOldPulumi } from "./old-pulumi.ts";

const slow = 420_000;
const scene = useScene("configuration");

beforeAll(async () => {
  scene.git.create("echo").commit(echoProject);
  const plain = newProgram("plain", { outputs: { text: "plain" } });
  await applyTo(scene, limits('{"requests": {"perSecond": 20}}'), database("canary-password"), plain);
}, slow);

const limits = (json: string): object =>
  newConfigMap("app-settings", {
    "limits.json": json,
    "database.json": '{"host": "db.example.com", "port": 5432, "maxConnections": 100}',
  });

const database = (password: string): object => newSecret("database", { password });

/** Keys that are paths into a value, which only Workspaces support. */
const withPaths = {
  spec: {
    ...onFileBackend.workspaceTemplate.spec,
    stacks: [
      {
        name: "configured",
        config: [
          { key: "tree.list[0].name", path: true, value: "first" },
          { key: 'tree["a space"]', path: true, value: true },
        ],
      },
    ],
  },
};

/** With the keys of the Stack; the program sees `project:config:key`. */
async function readGiven(): Promise<Given> {
  const text = await readOutput(scene, "configured", "given");
  return JSON.parse(text.replaceAll('"echo:config:', '"').replaceAll("aws:config:", "aws:")) as Given;
}

describe("configuration", () => {
  test.concurrent(
    "is passed on unchanged, is removed when it is no longer in the spec, and follows ConfigMaps and Secrets",
    async () => {
      const source = scene.git.source("echo");
      // The values of the docs, and some more.
      const config = {
        environment: "production",
        database: { host: "db.example.com", port: 5432, ssl: true },
        regions: ["us-west-2", "us-east-1", "eu-west-1"],
        maxConnections: 100,
        enableCaching: true,
        ratio: 0.25,
        empty: "",
        digits: "0123",
        "dotted.key": "not a path",
        "aws:region": "us-east-1",
      };
      const limited = { name: "app-settings", key: "limits.json", json: true };
      const settings = { name: "app-settings", key: "database.json", json: true };
      const password = fromSecret("database", "password");
      await applyTo(
        scene,
        newStack("configured", {
          ...source,
          config,
          configRef: { limits: limited },
          configRefs: { settings, text: { name: "app-settings", key: "limits.json" } },
          secretsRef: {
            password,
            literal: literal("canary-literal"),
            mapped: { type: "ConfigMap", configMap: { name: "app-settings", key: "limits.json" } },
          },
          secrets: { legacy: "canary-legacy" },
          workspaceTemplate: withPaths,
        }),
      );
      const ready = await stackUntil(scene, "configured", isReady);
      expect(JSON.stringify({ ...ready, spec: {} })).not.toContain("canary-password");
      const first = await readGiven();
      expect(first.config).toEqual({
        environment: "production",
        database: '{"host":"db.example.com","port":5432,"ssl":true}',
        regions: '["us-west-2","us-east-1","eu-west-1"]',
        maxConnections: "100",
        enableCaching: "true",
        ratio: "0.25",
        empty: "",
        digits: "0123",
        "dotted.key": "not a path",
        "aws:region": "us-east-1",
        tree: '{"a space":true,"list":[{"name":"first"}]}',
        limits: '{"requests":{"perSecond":20}}',
        settings: '{"host":"db.example.com","maxConnections":100,"port":5432}',
        text: '{"requests": {"perSecond": 20}}',
        password: "canary-password",
        literal: "canary-literal",
        mapped: '{"requests": {"perSecond": 20}}',
        legacy: "canary-legacy",
      });
      expect(first.secretKeys.toSorted()).toEqual(
        ["legacy", "literal", "mapped", "password"].map((key) => `echo:${key}`),
      );
      const pod = await podUid(scene, "configured");

      // Removes one value of each form.
      const { ratio: _, ...fewer } = config;
      const reduced = { ...source, config: fewer, secretsRef: { password } };
      await applyTo(
        scene,
        newStack("configured", { ...reduced, configRef: { limits: limited }, configRefs: { settings } }),
      );
      await stackUntil(scene, "configured", isReady);
      const removed = new Set(["ratio", "text", "literal", "mapped", "legacy", "tree"]);
      const second = await readGiven();
      expect(second.config).toEqual(
        Object.fromEntries(Object.entries(first.config).filter(([key]) => !removed.has(key))),
      );
      expect(second.secretKeys).toEqual(["echo:password"]);
      // The pod is kept, because it mounts the same files.
      expect(await podUid(scene, "configured")).toBe(pod);

      await applyTo(scene, limits('{"requests": '));
      // Either the Stack or its Workspace reports it first, and names the value.
      const invalid = await stackUntil(scene, "configured", (stack) => stalledReason(stack) !== undefined);
      expect(readyMessage(invalid)).toMatch(
        /configuration value limits cannot be used: the value is not valid JSON|is not valid JSON, which the configuration value limits needs/,
      );
      await applyTo(scene, limits('{"requests": {"perSecond": 30}}'));
      await waitFor(async () => (await readGiven()).config["limits"] === '{"requests":{"perSecond":30}}', {
        timeoutMs: 240_000,
        what: "the changed value of the ConfigMap in an update",
      });
      await applyTo(scene, database("canary-changed"));
      await waitFor(async () => (await readGiven()).config["password"] === "canary-changed", {
        timeoutMs: 240_000,
        what: "the changed value of the Secret in an update",
      });
      await stackUntil(scene, "configured", isReady);
    },
    slow,
  );

  localTest(test.concurrent, "it publishes an image with an old CLI")(
    "reports a CLI that is too old with the required version, and works with another image",
    async () => {
      const image = await publishOldPulumi();
      const template = onFileBackend.workspaceTemplate.spec;
      const withImage = (more: object): object =>
        newStack("dated", {
          programRef: { name: "plain" },
          config: { database: { port: 5432 } },
          workspaceTemplate: { spec: { ...template, ...more } },
        });
      await applyTo(scene, withImage({ image }));
      const stalled = await stackUntil(scene, "dated", (stack) => stalledReason(stack) === "PulumiVersionTooLow");
      expect(readyMessage(stalled)).toContain(
        `the workspace's Pulumi CLI is ${oldVersion}, but the operator needs 3.105.0`,
      );
      expect(readyMessage(stalled)).toContain("pulumi/pulumi:3.105.0-nonroot or later");

      // A field that is no longer applied is removed, here the image.
      await applyTo(scene, withImage({}));
      const ready = await stackUntil(scene, "dated", isReady);
      expect(ready.status?.outputs).toEqual({ text: "plain" });
      const workspace = ["get", "workspace", "dated", ...at(scene), "--output=jsonpath={.status.pulumiVersion}"];
      expect(await kubectl(workspace)).not.toBe(oldVersion);
    },
    slow,
  );
});
