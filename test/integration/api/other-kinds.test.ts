/** The spec of an Update and the whole record of its run are immutable; Workspaces and Programs have the rules of the Go operator. */
import type { Program, Update, UpdateRecord, UpdateSpec, Workspace } from "@pko/api";
import { isInvalid } from "@pko/kube";
import { testNamespace, type ApiServer, type TestNamespace } from "@pko/testkit";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";

import { apiServerWithApi, testTimeoutMs, programs, updateRecords, updates, workspaces } from "./install.ts";

setDefaultTimeout(testTimeoutMs);

let server: ApiServer;
let namespace: TestNamespace;

beforeAll(async () => {
  server = await apiServerWithApi();
  namespace = await testNamespace();
}, testTimeoutMs);

afterAll(async () => namespace.remove(), testTimeoutMs);

/** Empty if the API server accepts the request. */
async function admissionError(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
    return "";
  } catch (error) {
    if (isInvalid(error)) return error.explanation;
    throw error;
  }
}

describe("an Update", () => {
  const ref = () => ({ name: "web-1", namespace: namespace.name });
  const spec: UpdateSpec = {
    workspaceName: "web",
    stackName: "dev",
    type: "up",
    message: "a commit",
    target: ["urn:a"],
    refresh: true,
    ttlAfterCompleted: "24h",
  };
  const change = (body: object) => server.client.patch(updates, ref(), { patch: { type: "merge", body } });

  beforeAll(async () => {
    const update: Update = { apiVersion: updates.apiVersion, kind: updates.kind, metadata: ref(), spec };
    await server.client.create(updates, update, { fieldValidation: "Strict" });
  }, testTimeoutMs);

  const changes: [string, object][] = [
    ["type", { type: "destroy" }],
    ["workspaceName", { workspaceName: "other" }],
    ["stackName", { stackName: "prod" }],
    ["message", { message: null }],
    ["target", { target: ["urn:a", "urn:b"] }],
    ["refresh", { refresh: false }],
    ["replace", { replace: ["urn:a"] }],
    ["parallel", { parallel: 1 }],
    ["expectNoChanges", { expectNoChanges: true }],
    ["targetDependents", { targetDependents: true }],
    ["continueOnError", { continueOnError: true }],
    ["remove", { remove: true }],
    ["runProgram", { runProgram: true }],
  ];
  for (const [field, changed] of changes) {
    test(`cannot change its ${field}`, async () => {
      const error = await admissionError(change({ spec: changed }));
      expect(error).toContain(`spec.${field}: Forbidden: is immutable; create a new Update`);
    });
  }

  test("cannot lose its spec", async () => {
    expect(await admissionError(change({ spec: null }))).toContain("is immutable");
  });

  test("can change its time to live", async () => {
    expect((await change({ spec: { ttlAfterCompleted: "1h" } })).spec?.ttlAfterCompleted).toBe("1h");
  });

  test("cannot have a time to live that is not a duration", async () => {
    expect(await admissionError(change({ spec: { ttlAfterCompleted: "a day" } }))).toContain("is not a valid duration");
  });

  test("stores the changes and output of a preview", async () => {
    const status = {
      startTime: new Date().toISOString(),
      permalink: "https://app.pulumi.com/1",
      changes: { create: 1 },
      summary: "1 to create",
      stdout: { text: "Previewing", truncated: false },
    };
    const patch = { type: "merge", body: { status } } as const;
    expect((await server.client.patch(updates, ref(), { patch, subresource: "status" })).status).toEqual(status);
  });

  test("cannot store more output than the limit", async () => {
    const stdout = { text: "x".repeat(20_000), truncated: false };
    const patch = { type: "merge", body: { status: { stdout } } } as const;
    const error = await admissionError(server.client.patch(updates, ref(), { patch, subresource: "status" }));
    expect(error).toContain("status.stdout.text");
  });
});

describe("an UpdateRecord", () => {
  const ref = () => ({ name: "web-1", namespace: namespace.name });
  const ended: UpdateRecord["record"] = {
    updateName: "web-1",
    updateUid: "4c6f2b8e",
    pulumiStack: "dev",
    type: "up",
    result: "succeeded",
    startTime: "2026-01-01T00:00:00Z",
    endTime: "2026-01-01T00:01:00Z",
  };
  const withRecord = (record: unknown): UpdateRecord =>
    ({ apiVersion: updateRecords.apiVersion, kind: updateRecords.kind, metadata: ref(), record }) as UpdateRecord;
  const create = async (record: unknown) =>
    server.client.create(updateRecords, withRecord(record), { dryRun: true, fieldValidation: "Strict" });

  test("has room for the largest content", async () => {
    const content = "x".repeat(64 * 1024);
    expect((await create({ ...ended, content })).record.content).toBe(content);
  });

  const bad: [string, unknown, string][] = [
    ["without a record", undefined, "record: is required"],
    ["with too much content", { ...ended, content: "x".repeat(64 * 1024 + 1) }, "record.content: Too long"],
    ["of an unknown result", { ...ended, result: "fine" }, "record.result: Unsupported value"],
    ["that does not say when the run ended", { ...ended, endTime: undefined }, "record.endTime: Required value"],
  ];
  for (const [what, record, expected] of bad) {
    test(`${what} is rejected`, async () => expect(await admissionError(create(record))).toContain(expected));
  }

  test("cannot be changed", async () => {
    await server.client.create(updateRecords, withRecord(ended), { fieldValidation: "Strict" });
    for (const change of [{ result: "failed" }, { trigger: "nobody" }, null]) {
      const patch = { type: "merge", body: { record: change } } as const;
      const error = await admissionError(server.client.patch(updateRecords, ref(), { patch }));
      expect(error).toMatch(/is immutable|is required/);
    }
  });
});

describe("a Workspace", () => {
  const workspace = (spec: unknown): Workspace =>
    ({
      apiVersion: workspaces.apiVersion,
      kind: workspaces.kind,
      metadata: { name: "web", namespace: namespace.name },
      spec,
    }) as Workspace;
  const create = async (spec: unknown) =>
    server.client.create(workspaces, workspace(spec), { dryRun: true, fieldValidation: "Strict" });

  test("gets the defaults of the Go operator", async () => {
    expect((await create({})).spec).toEqual({ securityProfile: "restricted", serviceAccountName: "default" });
  });

  const bad: [string, unknown, string][] = [
    ["with a stack without a name", { stacks: [{}] }, "spec.stacks[0].name: Required value"],
    ["with a stack named twice", { stacks: [{ name: "a" }, { name: "a" }] }, "Duplicate value"],
    ["with configuration without a key", { stacks: [{ name: "a", config: [{}] }] }, "config[0].key: Required value"],
    ["with a variable without a name", { env: [{}] }, "spec.env[0].name: Required value"],
    ["with a variable set twice", { env: [{ name: "A" }, { name: "A" }] }, "Duplicate value"],
    ["with a project without a runtime", { projectInfo: { name: "a" } }, "spec.projectInfo.runtime: Required value"],
    ["with an App without an ID", { git: { auth: { githubApp: {} } } }, "githubApp.appID: Required value"],
  ];
  for (const [what, spec, expected] of bad) {
    test(`${what} is rejected`, async () => expect(await admissionError(create(spec))).toContain(expected));
  }
});

describe("a Program", () => {
  const create = async (program: unknown) => {
    const metadata = { name: "web", namespace: namespace.name };
    const object = { apiVersion: programs.apiVersion, kind: programs.kind, metadata, program } as Program;
    return await server.client.create(programs, object, { dryRun: true, fieldValidation: "Strict" });
  };

  test("keeps the parts of Pulumi YAML that the Go operator's CRD does not list", async () => {
    const program = {
      name: "web",
      configuration: { size: { type: "Integer", default: 3, secret: true } },
      variables: { image: { "fn::invoke": { function: "docker:getImage", arguments: { tag: null } } } },
      resources: {
        bucket: {
          type: "aws:s3:Bucket",
          properties: { tags: { a: 1 } },
          options: { retainOnDelete: true, aliases: [{ name: "old" }], customTimeouts: { create: "10m" } },
        },
        existing: { type: "aws:s3:Bucket", get: { id: "b", state: { region: "eu" } } },
      },
      outputs: { url: { "fn::toJSON": ["${bucket.id}"] } },
      packages: { random: "4.16.0" },
    };
    expect(JSON.parse(JSON.stringify((await create(program)).program))).toEqual(program);
  });

  const bad: [string, unknown, string][] = [
    ["with a resource without a type", { resources: { a: {} } }, "program.resources.a.type: Required value"],
    [
      "with a resource with an empty type",
      { resources: { a: { type: "" } } },
      "program.resources.a.type: Invalid value",
    ],
    ["that reads a resource without an ID", { resources: { a: { type: "t", get: {} } } }, "get.id: Required value"],
    ["with a list of resources", { resources: [] }, "program.resources: Invalid value"],
  ];
  for (const [what, program, expected] of bad) {
    test(`${what} is rejected`, async () => expect(await admissionError(create(program))).toContain(expected));
  }
});
