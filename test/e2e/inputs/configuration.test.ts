/** Issue 8, 6: configuration of every form, from every place; what is wrong with it is told, and mended without help. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createRepository, serveGit, type GitServer } from "@pko/agent/testing";
import { network } from "@pko/cluster";
import { waitFor } from "@pko/testkit";

import {
  apply,
  clearNamespace,
  isReady,
  kubectl,
  newNamespace,
  onFileBackend,
  outputOf,
  podOf,
  stackUntil,
  startOperator,
  type Operator,
  type Place,
} from "../harness.ts";
import { echoProject, type Given } from "./echo.ts";
import { messageOf, stalledReasonOf } from "./messages.ts";
import { oldVersion, publishOldPulumi } from "./old-pulumi.ts";

const slow = 420_000;
const folder = mkdtempSync(join(tmpdir(), "pko-configuration-"));

let operator: Operator;
let place: Place;
let git: GitServer;

beforeAll(async () => {
  const namespace = await newNamespace("configuration");
  operator = await startOperator([namespace], "--reference-check-interval=3s");
  place = { client: operator.client, namespace };
  git = serveGit(folder, { hostname: network.machine });
  createRepository(folder, "echo").commit(echoProject);
  await apply(limits('{"requests": {"perSecond": 20}}'), database("canary-password"), {
    apiVersion: "pulumi.com/v1",
    kind: "Program",
    metadata: { name: "plain", namespace },
    program: { outputs: { text: "plain" } },
  });
}, slow);

afterAll(async () => {
  await clearNamespace(place.namespace);
  await git.stop();
  await operator.stop();
}, slow);

const limits = (json: string): object => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "app-settings", namespace: place.namespace },
  data: { "limits.json": json, "database.json": '{"host": "db.example.com", "port": 5432, "maxConnections": 100}' },
});

const database = (password: string): object => ({
  apiVersion: "v1",
  kind: "Secret",
  metadata: { name: "database", namespace: place.namespace },
  stringData: { password },
});

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

const stackOf = (name: string, spec: object): object => ({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name, namespace: place.namespace },
  spec: { ...onFileBackend, stack: name, destroyOnFinalize: true, ...spec },
});

/** With the keys as a Stack has them: programs get `project:config:key`. */
async function given(): Promise<Given> {
  const text = await outputOf(place, "configured", "given");
  return JSON.parse(text.replaceAll('"echo:config:', '"').replaceAll("aws:config:", "aws:")) as Given;
}

describe("configuration", () => {
  test.concurrent(
    "arrives as it was written, goes when it is taken out, and is followed where it comes from",
    async () => {
      const source = { projectRepo: `http://${network.machine}:${git.port}/echo.git`, branch: "main" };
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
      const password = { type: "Secret", secret: { name: "database", key: "password" } };
      await apply(
        stackOf("configured", {
          ...source,
          config,
          configRef: { limits: limited },
          configRefs: { settings, text: { name: "app-settings", key: "limits.json" } },
          secretsRef: {
            password,
            literal: { type: "Literal", literal: { value: "canary-literal" } },
            mapped: { type: "ConfigMap", configMap: { name: "app-settings", key: "limits.json" } },
          },
          secrets: { legacy: "canary-legacy" },
          workspaceTemplate: withPaths,
        }),
      );
      const ready = await stackUntil(place, "configured", isReady);
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
      const pod = await podOf(place, "configured");

      // One of each form is taken out.
      const { ratio: _, ...fewer } = config;
      const reduced = { ...source, config: fewer, secretsRef: { password } };
      await apply(stackOf("configured", { ...reduced, configRef: { limits: limited }, configRefs: { settings } }));
      await stackUntil(place, "configured", isReady);
      const gone = new Set(["ratio", "text", "literal", "mapped", "legacy", "tree"]);
      const second = await given();
      expect(second.config).toEqual(Object.fromEntries(Object.entries(first.config).filter(([key]) => !gone.has(key))));
      expect(second.secretKeys).toEqual(["echo:password"]);
      // The same files are read, so the same pod could stay.
      expect(await podOf(place, "configured")).toBe(pod);

      await apply(limits('{"requests": '));
      // The Stack or its Workspace sees it first; either names the value.
      const invalid = await stackUntil(place, "configured", (stack) => stalledReasonOf(stack) !== undefined);
      expect(messageOf(invalid)).toMatch(
        /configuration limits: the value is not valid JSON|is not JSON, as the configuration value limits says/,
      );
      await apply(limits('{"requests": {"perSecond": 30}}'));
      await waitFor(async () => (await given()).config["limits"] === '{"requests":{"perSecond":30}}', {
        timeoutMs: 240_000,
        what: "the changed value of the ConfigMap in an update",
      });
      await apply(database("canary-changed"));
      await waitFor(async () => (await given()).config["password"] === "canary-changed", {
        timeoutMs: 240_000,
        what: "the changed value of the Secret in an update",
      });
      await stackUntil(place, "configured", isReady);
    },
    slow,
  );

  test.concurrent(
    "a CLI that is too old is told with the version that is needed and how to get it; another image is enough",
    async () => {
      const image = await publishOldPulumi();
      const template = onFileBackend.workspaceTemplate.spec;
      const withImage = (more: object): object =>
        stackOf("dated", {
          programRef: { name: "plain" },
          config: { database: { port: 5432 } },
          workspaceTemplate: { spec: { ...template, ...more } },
        });
      await apply(withImage({ image }));
      const stalled = await stackUntil(place, "dated", (stack) => stalledReasonOf(stack) === "PulumiVersionTooLow");
      expect(messageOf(stalled)).toContain(`the workspace's Pulumi CLI is ${oldVersion}; the operator needs 3.105.0`);
      expect(messageOf(stalled)).toContain("pulumi/pulumi:3.105.0-nonroot or a later one");
      // `kubectl apply` takes away what is no longer there.
      await apply(withImage({}));
      const ready = await stackUntil(place, "dated", isReady);
      expect(ready.status?.outputs).toEqual({ text: "plain" });
      const workspace = [
        "get",
        "workspace",
        "dated",
        "-n",
        place.namespace,
        "--output=jsonpath={.status.pulumiVersion}",
      ];
      expect(await kubectl(workspace)).not.toBe(oldVersion);
    },
    slow,
  );
});
