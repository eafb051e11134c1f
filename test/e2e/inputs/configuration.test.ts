/** Issue 8, 6: configuration of every form, from every place; what is wrong with it is told, and mended without help. */
import { beforeAll, describe, expect, test } from "bun:test";

import { waitFor } from "@pko/testkit";

import {
  applyTo,
  at,
  fromSecret,
  isReady,
  kubectl,
  literal,
  messageOf,
  newConfigMap,
  newProgram,
  newSecret,
  newStack,
  onFileBackend,
  podUid,
  readOutput,
  stackUntil,
  stalledReasonOf,
  useScene,
} from "../harness.ts";
import { echoProject, type Given } from "./echo.ts";
import { oldVersion, publishOldPulumi } from "./old-pulumi.ts";

const slow = 420_000;
const scene = useScene("configuration", { operator: { flags: ["--reference-check-interval=3s"] } });

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

/** Keys that are paths into a value, as Workspaces have them. */
const withPaths = {
  spec: {
    ...onFileBackend.workspaceTemplate.spec,
    stacks: [
      {
        name: "configured",
        config: [
          { key: "tree.list[0].name", path: true, value: "first" },
          { key: 'tree["two words"]', path: true, value: true },
        ],
      },
    ],
  },
};

const destroyed = (name: string, spec: object): object => newStack(name, { destroyOnFinalize: true, ...spec });

/** With the keys as a Stack has them: programs get `project:config:key`. */
async function given(): Promise<Given> {
  const text = await readOutput(scene, "configured", "given");
  return JSON.parse(text.replaceAll('"echo:config:', '"').replaceAll("aws:config:", "aws:")) as Given;
}

describe("configuration", () => {
  test.concurrent(
    "arrives as it was written, goes when it is taken out, and is followed where it comes from",
    async () => {
      const source = { projectRepo: scene.git.url("echo"), branch: "main" };
      // The document's own values (seed 001), and some more.
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
        destroyed("configured", {
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
      const first = await given();
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
        tree: '{"list":[{"name":"first"}],"two words":true}',
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

      // One of each form is taken out.
      const { ratio: _, ...fewer } = config;
      const reduced = { ...source, config: fewer, secretsRef: { password } };
      await applyTo(
        scene,
        destroyed("configured", { ...reduced, configRef: { limits: limited }, configRefs: { settings } }),
      );
      await stackUntil(scene, "configured", isReady);
      const gone = new Set(["ratio", "text", "literal", "mapped", "legacy", "tree"]);
      const second = await given();
      expect(second.config).toEqual(Object.fromEntries(Object.entries(first.config).filter(([key]) => !gone.has(key))));
      expect(second.secretKeys).toEqual(["echo:password"]);
      // The same files are read, so the same pod could stay.
      expect(await podUid(scene, "configured")).toBe(pod);

      await applyTo(scene, limits('{"requests": '));
      // The Stack or its Workspace sees it first; either names the value.
      const invalid = await stackUntil(scene, "configured", (stack) => stalledReasonOf(stack) !== undefined);
      expect(messageOf(invalid)).toMatch(
        /configuration limits: the value is not valid JSON|is not JSON, as the configuration value limits says/,
      );
      await applyTo(scene, limits('{"requests": {"perSecond": 30}}'));
      await waitFor(async () => (await given()).config["limits"] === '{"requests":{"perSecond":30}}', {
        timeoutMs: 240_000,
        what: "the changed value of the ConfigMap in an update",
      });
      await applyTo(scene, database("canary-changed"));
      await waitFor(async () => (await given()).config["password"] === "canary-changed", {
        timeoutMs: 240_000,
        what: "the changed value of the Secret in an update",
      });
      await stackUntil(scene, "configured", isReady);
    },
    slow,
  );

  test.concurrent(
    "a CLI that is too old is told with the version that is needed and how to get it; another image is enough",
    async () => {
      const image = await publishOldPulumi();
      const template = onFileBackend.workspaceTemplate.spec;
      const withImage = (more: object): object =>
        destroyed("dated", {
          programRef: { name: "plain" },
          config: { database: { port: 5432 } },
          workspaceTemplate: { spec: { ...template, ...more } },
        });
      await applyTo(scene, withImage({ image }));
      const stalled = await stackUntil(scene, "dated", (stack) => stalledReasonOf(stack) === "PulumiVersionTooLow");
      expect(messageOf(stalled)).toContain(`the workspace's Pulumi CLI is ${oldVersion}; the operator needs 3.105.0`);
      expect(messageOf(stalled)).toContain("pulumi/pulumi:3.105.0-nonroot or a later one");
      // `kubectl apply` takes away what is no longer there.
      await applyTo(scene, withImage({}));
      const ready = await stackUntil(scene, "dated", isReady);
      expect(ready.status?.outputs).toEqual({ text: "plain" });
      const workspace = ["get", "workspace", "dated", ...at(scene), "--output=jsonpath={.status.pulumiVersion}"];
      expect(await kubectl(workspace)).not.toBe(oldVersion);
    },
    slow,
  );
});
