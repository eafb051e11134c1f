/** The commands against the API server: what they read, write, print and refuse. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  approvalKind,
  cancellationRequestAnnotation,
  driftRequestAnnotation,
  labelsOfStack,
  reconcileRequestAnnotation,
  type Approval,
  type Stack,
} from "@pko/api";
import { builtin, resource } from "@pko/kube";
import { programPath, waitFor } from "@pko/testkit";
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { stacks } from "../api/install.ts";
import {
  ago,
  ahead,
  CliStage,
  condition,
  parseDocument,
  ready,
  reconciling,
  stalled,
  testTimeoutMs,
} from "./harness.ts";
import type { Rule } from "../harness/permissions.ts";

setDefaultTimeout(testTimeoutMs);

const approvals = resource<Approval>(approvalKind);

const approval = (state: "Pending" | "Approved", expiresAt = ahead(3600)) => ({
  state,
  updateName: "web-aaaaaaaaaaaa",
  updateUid: "11111111-2222-3333-4444-555555555555",
  digest: "sha256:abc",
  trigger: "{}",
  summary: "1 to replace, 1 to create\nreplace  aws:rds:Instance main\ncreate   aws:s3:Bucket logs",
  unknownInputs: 2,
  expiresAt,
});

const awaiting = (state: "Pending" | "Approved" = "Pending", expiresAt?: string) =>
  reconciling("AwaitingApproval", "The changes must be approved.", { approval: approval(state, expiresAt) });

const stackIn = async ({ client, namespace }: CliStage, name = "web"): Promise<Stack> =>
  await client.get(stacks, { namespace, name });

describe("get", () => {
  test("the fleet, those that fail first, with whole messages", async () => {
    await using stage = await CliStage.set();
    const message = `The up web-0 failed: ${"a very long explanation ".repeat(20)}end`;
    await stage.stack("a-ready", {}, ready());
    await stage.stack("m-waiting", {}, awaiting());
    await stage.stack("z-failing", {}, stalled("UpdateFailed", message));
    const { out, code } = await stage.cli(["get"], { columns: 80 });
    expect(code).toBe(0);
    const names = [...out.matchAll(/^([amz]-\w+)/gm)].map(([, name]) => name);
    expect(names).toEqual(["z-failing", "m-waiting", "a-ready"]);
    expect(out.replaceAll(/\s+/g, " ")).toContain(message.replaceAll(/\s+/g, " "));
    expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
    const document = parseDocument((await stage.cli(["get", "-o", "json"])).out);
    expect(document["items"]).toHaveLength(3);
  });

  test("one Stack in detail", async () => {
    await using stage = await CliStage.set();
    const drifted = condition("Drifted", { status: "True", reason: "DriftDetected", message: "1 resource differs" });
    const resources = [
      { urn: "urn:pulumi:dev::web::aws:s3/bucket:Bucket::logs", operation: "update", properties: ["tags"] },
    ];
    await stage.stack(
      "web",
      { prerequisites: [{ name: "db" }] },
      ready("The last update succeeded.", {
        conditions: [drifted],
        outputs: { url: "https://web", password: "[secret]" },
        drift: { checkedAt: ago(60), summary: "1 resource differs", resources },
        lastUpdate: {
          name: "web-0",
          type: "up",
          state: "succeeded",
          lastResyncTime: ago(60),
          lastAttemptedCommit: "abc",
        },
      }),
    );
    const { out } = await stage.cli(["get", "web"]);
    for (const part of ["Drifted", "https://web", "[secret]", "tags", "abc", "up succeeded", "db"]) {
      expect(out).toContain(part);
    }
    parseDocument((await stage.cli(["get", "web", "-o", "json"])).out);
  });

  test("no Stacks", async () => {
    await using stage = await CliStage.set();
    expect((await stage.cli(["get"])).out).toBe(`There are no Stacks in namespace ${stage.namespace}.\n`);
  });
});

describe("control", () => {
  test("reconcile and drift write new values of their annotations", async () => {
    await using stage = await CliStage.set();
    await stage.stack("web", {}, ready());
    const values = new Set<string>();
    for (const [command, annotation] of [
      ["reconcile", reconcileRequestAnnotation],
      ["reconcile", reconcileRequestAnnotation],
      ["drift", driftRequestAnnotation],
    ] as const) {
      const { out } = await stage.cli([command, "web", "-o", "json"]);
      parseDocument(out);
      values.add((await stackIn(stage)).metadata.annotations?.[annotation] ?? "");
    }
    expect(values.size).toBe(3);
  });

  test("reconcile --wait shows the result and fails if the update failed", async () => {
    await using stage = await CliStage.set();
    await stage.stack("web", {}, ready());
    const running = stage.cli(["reconcile", "web", "--wait", "--timeout", "60s"]);
    const request = await waitFor(
      async () => (await stackIn(stage)).metadata.annotations?.[reconcileRequestAnnotation],
      { timeoutMs: 30_000 },
    );
    const lastUpdate = { state: "failed", type: "up", reconcileRequest: request, message: "no such bucket" };
    await stage.status(
      "web",
      stalled("UpdateFailed", "no such bucket", { observedReconcileRequest: request, lastUpdate }),
    );
    const { code, out } = await running;
    expect(code).toBe(1);
    expect(out).toContain("no such bucket");
  });

  test("cancel names the running Update, and refuses if there is none", async () => {
    await using stage = await CliStage.set();
    await stage.stack("idle", {}, ready());
    await stage.stack("web", {}, reconciling("StackProcessing", "running", { currentUpdate: { name: "web-1" } }));
    expect((await stage.cli(["cancel", "idle", "--yes"])).err).toContain("nothing to cancel");
    const unconfirmed = await stage.cli(["cancel", "web"]);
    expect(unconfirmed.code).toBe(6);
    expect((await stackIn(stage)).metadata.annotations).toBeUndefined();
    expect((await stage.cli(["cancel", "web", "--yes"])).code).toBe(0);
    expect((await stackIn(stage)).metadata.annotations?.[cancellationRequestAnnotation]).toBe("web-1");
  });

  test("suspend and resume set the field", async () => {
    await using stage = await CliStage.set();
    await stage.stack("web", {}, ready());
    await stage.cli(["suspend", "web"]);
    expect((await stackIn(stage)).spec.suspend).toBe(true);
    expect((await stage.cli(["suspend", "web"])).out).toContain("suspended already");
    await stage.cli(["resume", "web"]);
    expect((await stackIn(stage)).spec.suspend).toBe(false);
  });
});

describe("approve and reject", () => {
  test.each([
    ["approve", "Approve"],
    ["reject", "Reject"],
  ] as const)("%s shows the plan and writes the Approval in the user's own name", async (command, decision) => {
    await using stage = await CliStage.set();
    await stage.stack("web", {}, awaiting());
    const result = await stage.cli([command, "web", "--reason", "checked", "--yes", "-o", "json"]);
    expect(result.code).toBe(0);
    expect(result.err).toContain("replace  aws:rds:Instance main");
    expect(result.err).toContain("2 input values will be known only while the plan is applied");
    parseDocument(result.out);
    const { items } = await stage.client.list(approvals, { namespace: stage.namespace });
    expect(items.map(({ spec }) => spec)).toEqual([
      {
        updateName: "web-aaaaaaaaaaaa",
        updateUid: "11111111-2222-3333-4444-555555555555",
        digest: "sha256:abc",
        decision,
        decidedBy: "admin",
        reason: "checked",
      },
    ]);
  });

  test("without a confirmation, nothing is written", async () => {
    await using stage = await CliStage.set();
    await stage.stack("web", {}, awaiting());
    expect((await stage.cli(["approve", "web"])).code).toBe(6);
    expect((await stage.client.list(approvals, { namespace: stage.namespace })).items).toEqual([]);
  });

  test("a plan that is decided, expired or not required", async () => {
    await using stage = await CliStage.set();
    await stage.stack("decided", {}, awaiting("Approved"));
    await stage.stack("expired", {}, awaiting("Pending", ago(60)));
    await stage.stack("web", {}, ready());
    expect((await stage.cli(["approve", "decided", "--yes"])).err).toContain("already approved");
    expect((await stage.cli(["approve", "expired", "--yes"])).err).toContain("expired");
    expect((await stage.cli(["approve", "web", "--yes"])).err).toContain("is not waiting for an approval");
  });
});

describe("updates", () => {
  test("history, show and logs without a pod", async () => {
    await using stage = await CliStage.set();
    const done = [
      condition("Complete", { status: "True", reason: "Complete", message: "" }),
      condition("Failed", { status: "True", reason: "UpdateFailed", message: "" }),
    ];
    await stage.stack("web", {}, stalled("UpdateFailed", "no such bucket"));
    await stage.update("web-0a1b2c3d4e5f", "web", {
      spec: { message: `Stack ${stage.namespace}/web: the new revision abc` },
      status: {
        startTime: ago(120),
        endTime: ago(60),
        message: "no such bucket",
        errorClass: "programError",
        stdout: { text: "Updating (dev):\nerror: no such bucket\n", truncated: false },
        conditions: done,
      },
    });
    const history = await stage.cli(["history", "web"]);
    expect(history.out).toContain("the new revision abc: no such bucket");
    parseDocument((await stage.cli(["history", "web", "-o", "json"])).out);
    const shown = await stage.cli(["show", "web-0a1b2c3d4e5f"]);
    expect(shown.out).toContain("failed (programError)");
    expect(shown.out).toContain("  error: no such bucket");
    parseDocument((await stage.cli(["show", "web-0a1b2c3d4e5f", "-o", "json"])).out);
    for (const name of ["web", "web-0a1b2c3d4e5f"]) {
      const logs = await stage.cli(["logs", name]);
      expect(logs.out).toBe("Updating (dev):\nerror: no such bucket\n");
    }
  });

  test("unlock refuses while an Update runs, or without a pod", async () => {
    await using stage = await CliStage.set();
    await stage.stack("web", {}, ready());
    expect((await stage.cli(["unlock", "web", "--yes"])).err).toContain("has no pod");
    await stage.update("web-0a1b2c3d4e5f", "web", { status: { startTime: ago(10) } });
    expect((await stage.cli(["unlock", "web", "--yes"])).err).toContain("is running and holds the lock");
  });
});

test("outputs are masked, or read from the Secret", async () => {
  await using stage = await CliStage.set();
  await stage.stack("web", {}, ready("", { outputs: { url: "https://web", password: "[secret]" } }));
  const metadata = { name: "web-outputs", namespace: stage.namespace };
  const data = { password: Buffer.from("hunter2").toString("base64"), url: Buffer.from("x").toString("base64") };
  await stage.client.create(builtin.secrets, { apiVersion: "v1", kind: "Secret", metadata, data });
  const masked = parseDocument((await stage.cli(["outputs", "web", "-o", "json"])).out);
  expect(masked).toMatchObject({ outputs: { url: "https://web", password: "[secret]" }, masked: ["password"] });
  const shown = parseDocument((await stage.cli(["outputs", "web", "--show-secrets", "-o", "json"])).out);
  expect(shown).toMatchObject({ outputs: { url: "https://web", password: "hunter2" }, masked: [] });
});

test("graph draws prerequisites and outputs", async () => {
  await using stage = await CliStage.set();
  await stage.stack("db", {}, ready());
  const envRefs = { URL: { type: "StackOutput", stack: "db", output: "url" } };
  await stage.stack("web", { envRefs, prerequisites: [{ name: "cache" }] }, stalled("SpecInvalid", "x"));
  const { out } = await stage.cli(["graph"]);
  expect(out).toContain("flowchart LR");
  expect(out).toContain("-->|url|");
  expect(out).toContain('"cache<br/>Missing"');
  expect((await stage.cli(["graph", "-o", "dot"])).out).toContain("digraph stacks {");
  expect((await stage.cli(["graph", "-o", "svg"])).out).toStartWith("<svg ");
  parseDocument((await stage.cli(["graph", "-o", "json"])).out);
});

const viewer: readonly Rule[] = [
  { apiGroups: ["pulumi.com", "auto.pulumi.com"], resources: ["*"], verbs: ["get", "list", "watch"] },
];

describe("a user who may read the Stacks of one namespace", () => {
  test("sees them; the rest names the missing permission, and nothing of other namespaces", async () => {
    await using stage = await CliStage.set();
    await using other = await CliStage.set();
    await other.stack("hidden", {}, ready());
    await stage.stack("web", {}, ready("", { outputs: { password: "[secret]" } }));
    const cli = await stage.user("alice", viewer);
    const own = ["-n", stage.namespace];
    await waitFor(async () => (await cli(["get", ...own])).code === 0, {
      timeoutMs: 30_000,
      what: "the role to be effective",
    });
    expect((await cli(["get", ...own])).out).toContain("web");

    const everywhere = await cli(["get", "-A"]);
    expect(everywhere.code).toBe(4);
    expect(everywhere.err).toContain("alice cannot list stacks.pulumi.com in the whole cluster");
    const elsewhere = await cli(["get", "hidden", "-n", other.namespace]);
    expect(elsewhere.code).toBe(4);
    expect(elsewhere.err).toContain(`alice cannot get stacks.pulumi.com in namespace ${other.namespace}`);

    const change = await cli(["suspend", "web", ...own]);
    expect(change.code).toBe(4);
    expect(change.err.replaceAll(/\s+/g, " ")).toContain(
      `kubectl auth can-i patch stacks.pulumi.com --namespace ${stage.namespace}`,
    );
    const secrets = await cli(["outputs", "web", "--show-secrets", ...own]);
    expect(secrets.err).toContain("alice cannot get secrets");

    const why = await cli(["why", "web", ...own]);
    expect(why.code).toBe(0);
    expect(why.out.replaceAll(/\s+/g, " ")).toContain(
      `Cannot see the workspace pod: you do not have permission to get pods in namespace ${stage.namespace}.`,
    );
    const check = await cli(["check", "-A", "--migrate", "-o", "json"]);
    const { checks, differences } = parseDocument(check.out);
    expect(checks).toContainEqual({
      name: "Stacks",
      result: "unknown",
      message: "cannot see them: you do not have permission to list stacks.pulumi.com in the whole cluster",
    });
    expect(differences).toBeUndefined();
    for (const { out, err } of [everywhere, change, secrets, why]) {
      expect(out + err).not.toContain("hidden");
      expect(out + err).not.toContain(other.namespace);
    }
    // What the user has typed, but nothing about the Stack.
    expect(elsewhere.out).toBe("");
    expect(elsewhere.err).not.toContain("Ready");
  });
});

describe("errors", () => {
  test("an object that does not exist", async () => {
    await using stage = await CliStage.set();
    const { code, err } = await stage.cli(["why", "wbe"]);
    expect(code).toBe(3);
    expect(err).toContain(`There is no Stack wbe in namespace ${stage.namespace}.`);
  });

  test("wrong usage", async () => {
    await using stage = await CliStage.set();
    expect((await stage.cli(["why"])).code).toBe(2);
    expect((await stage.cli(["get", "-o", "xml"])).code).toBe(2);
    expect((await stage.cli(["get", "-A"])).err).toContain("mutually exclusive");
    // The path of the kubeconfig decides where the line is wrapped.
    const { err } = await stage.cli(["get", "--context", "nowhere"]);
    expect(err.replaceAll(/\s+/g, " ")).toContain('no context "nowhere"');
  });
});

test("check reports what is in order, and --migrate what differs", async () => {
  await using stage = await CliStage.set();
  await stage.stack("web", { projectRepo: "http://git.example.com/web.git", branch: "main" }, ready());
  const { out, code } = await stage.cli(["check", "--migrate", "-o", "json"]);
  expect(code).toBe(1);
  const document = parseDocument(out);
  const checks = document["checks"] as { name: string; result: string }[];
  const results = Object.fromEntries(checks.map(({ name, result }) => [name, result]));
  expect(results).toMatchObject({
    Kubernetes: "ok",
    CRDs: "ok",
    Operator: "ok",
    "Policy for Stacks": "ok",
    Stacks: "ok",
  });
  expect(document["differences"]).toMatchObject([{ severity: "blocks", name: "web", field: "spec.projectRepo" }]);
});

test("the support bundle contains the objects and no secrets", async () => {
  await using stage = await CliStage.set();
  const folder = mkdtempSync(join(tmpdir(), "bundle-"));
  try {
    const secret = "canary-5c1f";
    const config = { "web:password": secret };
    const envRefs = { TOKEN: { type: "Literal", literal: { value: secret } } };
    const workspaceTemplate = { spec: { env: [{ name: "KEY", value: secret }] } };
    await stage.stack("web", { config, envRefs, workspaceTemplate }, ready("fine", { outputs: { url: secret } }));
    const metadata = { name: "s", namespace: stage.namespace, labels: labelsOfStack("web") };
    const data = { key: Buffer.from(secret).toString("base64") };
    await stage.client.create(builtin.secrets, { apiVersion: "v1", kind: "Secret", metadata, data });
    const path = join(folder, "bundle.tar.gz");
    const { out, code } = await stage.cli(["support-bundle", "--file", path, "-o", "json"]);
    expect(code).toBe(0);
    parseDocument(out);
    const files = await new Bun.Archive(readFileSync(path)).files();
    const texts = await Promise.all([...files.values()].map(async (file) => await file.text()));
    expect([...files.keys()]).toContain("stacks.yaml");
    expect(texts.join("\n")).toContain("web:password");
    expect(texts.join("\n")).not.toContain(secret);
    expect(texts.join("\n")).not.toContain(data.key);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("completion knows commands, options and the names of Stacks", async () => {
  await using stage = await CliStage.set();
  await stage.stack("web", {}, ready());
  await stage.stack("website", {}, ready());
  const complete = async (...words: string[]): Promise<string[]> => {
    const args = ["__complete", "--kubeconfig", stage.server.kubeconfig, "-n", stage.namespace];
    const child = Bun.spawn([process.execPath, programPath("cli"), "__complete", ...words], {
      stdout: "pipe",
      env: { PATH: process.env["PATH"] ?? "", KUBECONFIG: args[2] },
    });
    return (await new Response(child.stdout).text()).trim().split("\n");
  };
  expect(await complete("his")).toEqual(["history\tList the updates of a Stack, the newest first", ":4"]);
  expect(await complete("get", "-n", stage.namespace, "we")).toEqual(["web", "website", ":4"]);
  await stage.update("web-bbbbbbbbbbbb", "web", {});
  await stage.record("web-aaaaaaaaaaaa", "web", {});
  const runs = ["web-bbbbbbbbbbbb", "web-aaaaaaaaaaaa"];
  expect(await complete("show", "-n", stage.namespace, "we")).toEqual([...runs, ":4"]);
  expect(await complete("logs", "-n", stage.namespace, "we")).toEqual(["web", "website", ...runs, ":4"]);
  expect(await complete("graph", "-o", "")).toEqual(["text", "json", "yaml", "mermaid", "dot", "svg", ":4"]);
  expect(await complete("get", "--context", "")).toEqual(["testkit", ":4"]);
});

test("version reports the cluster's version", async () => {
  await using stage = await CliStage.set();
  const document = parseDocument((await stage.cli(["version", "-o", "json"])).out);
  expect(document["kubernetes"]).toMatch(/^v1\./);
});
