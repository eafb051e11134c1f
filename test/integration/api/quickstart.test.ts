/** The first commands of a user: install, explain, list. */
import { customResourceDefinitions, operatorImage } from "@pko/api";
import { testNamespace, type ApiServer } from "@pko/testkit";
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { parseAllDocuments } from "yaml";

import { apiServerWithApi, pathTo, testTimeoutMs, quickstart, stacks } from "./install.ts";

setDefaultTimeout(testTimeoutMs);

let server: ApiServer;

beforeAll(async () => {
  server = await apiServerWithApi();
}, testTimeoutMs);

test("kubectl apply installs the quickstart manifest, and can be repeated", async () => {
  await server.kubectl(["apply", "--filename", quickstart]);
  const reapplied = await server.kubectl(["apply", "--filename", quickstart]);
  const lines = reapplied.trim().split("\n");
  expect(lines.filter((line) => !line.endsWith(" unchanged"))).toEqual([]);
  expect(reapplied).toContain("serviceaccount/pulumi");
});

test("the quickstart manifest grants nothing to the service account of Stacks", () => {
  const objects = parseAllDocuments(readFileSync(quickstart, "utf8")).map((document) => document.toJS() as Granting);
  const granted = objects.filter(({ subjects = [] }) => subjects.some(({ name }) => name === "pulumi"));
  expect(granted).toEqual([]);
});

interface Granting {
  readonly subjects?: readonly { readonly name: string }[];
}

test("the quickstart manifest contains the operator and is small", () => {
  const text = readFileSync(quickstart, "utf8");
  expect(Buffer.byteLength(text)).toBeLessThan(384 * 1024);
  expect(text).toContain(`image: ${operatorImage}`);
});

test("every CRD is a file below 256 KiB", () => {
  const folder = pathTo("../../../deploy/crds");
  const files = readdirSync(folder);
  expect(files).toHaveLength(customResourceDefinitions().length);
  for (const file of files) expect(statSync(`${folder}/${file}`).size).toBeLessThan(256 * 1024);
});

test("the API server reports no problem with the CRDs", async () => {
  const output = await server.kubectl(["get", "crd", "--output", "json"]);
  const { items } = JSON.parse(output) as {
    items: { metadata: { name: string }; status: { conditions: Condition[] } }[];
  };
  const ours = items.filter(({ metadata }) => metadata.name.endsWith("pulumi.com"));
  expect(ours).toHaveLength(customResourceDefinitions().length);
  for (const { status } of ours) {
    expect(status.conditions.find(({ type }) => type === "NonStructuralSchema")).toBeUndefined();
    expect(status.conditions).toContainEqual(
      expect.objectContaining({ type: "NamesAccepted", status: "True" }) as Condition,
    );
  }
});

interface Condition {
  readonly type: string;
  readonly status: string;
}

describe("kubectl explain describes", () => {
  const cases: [string, string][] = [
    ["stack", "A Pulumi stack that the operator keeps up to date with its program and spec."],
    ["stk.spec.branch", "The branch to follow"],
    ["stack.spec.envRefs.secret.key", "The key in the Secret."],
    ["stack.spec.prerequisites.requirement.succeededWithinDuration", "The maximum time since the Stack last succeeded"],
    ["stack.spec.workspaceTemplate.spec.podTemplate.spec", "A pod spec to merge over the generated one"],
    ["stack.status.lastUpdate.stdout.text", "The output, or its beginning and end"],
    ["program.program.resources.options.dependsOn", "One or more resources that must be created first."],
    ["workspace.spec.stacks.config.valueFrom", "The source of the value in the Pulumi container."],
    ["update.spec.type", "The operation: preview, up, refresh or destroy."],
  ];
  for (const [field, sentence] of cases) {
    test(field, async () => {
      const explanation = await server.kubectl(["explain", field]);
      expect(explanation.replaceAll(/\s+/g, " ")).toContain(sentence);
    });
  }
});

describe("kubectl get", () => {
  test("shows the state of a Stack by its short name", async () => {
    await using namespace = await testNamespace();
    await createPreviewedStack(namespace.name);
    const [heading = "", row = ""] = (await server.kubectl(["get", "stk", `--namespace=${namespace.name}`])).split(
      "\n",
    );
    expect(heading.split(/ {2,}/).map((name) => name.trim())).toEqual([
      "NAME",
      "LAST UPDATE",
      "AGE",
      "READY",
      "RECONCILING",
      "STALLED",
      "PERMALINK",
      "FAILURE",
    ]);
    expect(row).toMatch(/^web +succeeded +\S+ +True +https:\/\/app.pulumi.com\/1/);
  });

  test("shows more columns with --output=wide, and all our kinds in the category pulumi", async () => {
    await using namespace = await testNamespace();
    await createPreviewedStack(namespace.name);
    const wide = await server.kubectl(["get", "pulumi", "--output=wide", `--namespace=${namespace.name}`]);
    expect(wide).toContain("stack.pulumi.com/web");
    for (const shown of ["org/web/dev", "main@sha1:abc", "preview", "2 to create"]) expect(wide).toContain(shown);
  });
});

/** With the status after a preview. */
async function createPreviewedStack(namespace: string): Promise<void> {
  const metadata = { name: "web", namespace };
  await server.client.create(stacks, {
    apiVersion: stacks.apiVersion,
    kind: stacks.kind,
    metadata,
    spec: { stack: "org/web/dev", programRef: { name: "web" }, preview: true },
  });
  const now = new Date().toISOString();
  const ready = { type: "Ready", status: "True" as const, reason: "ProcessingCompleted", message: "up to date" };
  const status = {
    observedGeneration: 1,
    conditions: [{ ...ready, lastTransitionTime: now, observedGeneration: 1 }],
    lastUpdate: {
      name: "web-1",
      type: "preview",
      state: "succeeded",
      lastAttemptedCommit: "main@sha1:abc",
      lastResyncTime: now,
      permalink: "https://app.pulumi.com/1",
      changes: { create: 2, same: 1 },
      summary: "2 to create, 1 unchanged",
      stdout: { text: "Previewing update (dev)\n", truncated: true, secretName: "web-1-stdout" },
    },
    outputs: { url: "https://example.com", password: "[secret]", ports: [80, 443] },
    projectInfo: { name: "web", runtime: "yaml" },
  };
  const patch = { type: "merge", body: { status } } as const;
  const stored = await server.client.patch(stacks, metadata, { patch, subresource: "status" });
  expect(stored.status).toEqual(status);
}
