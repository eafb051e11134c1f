/** Commands about runs and their records, against the API server. */
import type { Stack, UpdateStatus } from "@pko/api";
import { builtin } from "@pko/kube";
import { emptyContent, encodeContent } from "@pko/records";
import { waitFor } from "@pko/testkit";
import { describe, expect, setDefaultTimeout, test } from "bun:test";

import { subnetError, urns } from "../../../packages/cli/src/testing/runs.ts";
import { stacks, updates } from "../api/install.ts";
import {
  ago,
  CliStage,
  cliWith,
  condition,
  parseDocument,
  ready,
  reconciling,
  stalled,
  startUntil,
  testTimeoutMs,
} from "./harness.ts";
import type { Rule } from "../harness/permissions.ts";

setDefaultTimeout(testTimeoutMs);

const [newer, older] = ["web-bbbbbbbbbbbb", "web-aaaaaaaaaaaa"];

/** Two runs of Stack `web`, whose Updates are gone. */
async function withRecords(): Promise<CliStage> {
  const stage = await CliStage.set();
  await stage.stack("web", {}, ready());
  await stage.record(older, "web", {
    result: "succeeded",
    revision: "77aa01b",
    endTime: ago(600),
    inputs: { config: "sha256:1" },
  });
  await stage.record(newer, "web", { endTime: ago(60), inputs: { config: "sha256:2" } });
  return stage;
}

/** The pod of Stack `web`, with this metadata. */
async function patchPod(stage: CliStage, metadata: object): Promise<void> {
  await stage.pod("web", {});
  const pod = { name: "web-workspace-0", namespace: stage.namespace };
  await stage.client.patch(builtin.pods, pod, { patch: { type: "merge", body: { metadata } } });
}

describe("records of runs whose Updates are gone", () => {
  test("history lists them, the newest first", async () => {
    await using stage = await withRecords();
    const document = parseDocument((await stage.cli(["history", "web", "-o", "json"])).out);
    expect(document["items"]).toMatchObject([
      { name: newer, state: "failed", recorded: true },
      { name: older, state: "succeeded" },
    ]);
  });

  test("show has resources, properties, diagnostics, approver and versions", async () => {
    await using stage = await withRecords();
    const { out, code } = await stage.cli(["show", newer], { columns: 140 });
    expect(code).toBe(0);
    for (const part of [
      "create failed  aws:ec2/subnet:Subnet a",
      "spec.replicas: 1 → 3",
      subnetError,
      "by alice",
      "3.259.0",
    ]) {
      expect(out).toContain(part);
    }
    parseDocument((await stage.cli(["show", newer, "-o", "json"])).out);
    const missing = await stage.cli(["show", "web-cccccccccccc"]);
    expect(missing.code).toBe(3);
    expect(missing.err).toContain("and no record of one");
  });

  test("logs prints what the record has kept", async () => {
    await using stage = await withRecords();
    const { out, err, code } = await stage.cli(["logs", newer]);
    expect(code).toBe(0);
    expect(err).toContain(`this is what ${newer} has kept`);
    expect(out).toContain(subnetError);
    expect((await stage.cli(["logs", "web-cccccccccccc"])).code).toBe(3);
  });

  test("diff of one run, and of two", async () => {
    await using stage = await withRecords();
    expect((await stage.cli(["diff", newer])).out).toContain("replace  aws:rds/instance:Instance main");
    const compared = parseDocument((await stage.cli(["diff", older, newer, "-o", "json"])).out);
    expect(compared["inputs"]).toEqual([{ name: "config", from: "sha256:1", to: "sha256:2" }]);
    expect(compared["run"]).toContainEqual({ name: "revision", from: "77aa01b", to: "9c4f2d1" });
  });

  test("diff of a Stack shows its latest preview, or says how to make one", async () => {
    await using stage = await withRecords();
    const none = await stage.cli(["diff", "web"]);
    expect(none.code).toBe(3);
    expect(none.err.replaceAll(/\s+/g, " ")).toContain("kubectl pulumi preview web");
    await stage.record("web-dddddddddddd", "web", { type: "preview", result: "succeeded" });
    const document = parseDocument((await stage.cli(["diff", "web", "-o", "json"])).out);
    expect(document["items"]).toMatchObject([{ what: "preview", update: "web-dddddddddddd" }]);
    expect((await stage.cli(["diff"])).out).toContain("Preview web-dddddddddddd of Stack web");
  });

  test("tree shows the resources by parent", async () => {
    await using stage = await withRecords();
    expect((await stage.cli(["tree", "web"])).out).toContain("│  └─ aws:ec2/subnet:Subnet a  subnet-1");
    parseDocument((await stage.cli(["tree", "web", "-o", "json"])).out);
    await stage.stack("new", {}, ready());
    expect((await stage.cli(["tree", "new"])).err).toContain("no record of Stack new");
  });

  test("trace finds the Stack and the commit of an ID, a URN and an object", async () => {
    await using stage = await withRecords();
    for (const query of ["logs-4711", urns.bucket]) {
      const document = parseDocument((await stage.cli(["trace", query, "-o", "json"])).out);
      expect(document["matches"]).toMatchObject([
        { stack: "web", urn: urns.bucket, exists: true, revision: "9c4f2d1" },
      ]);
    }
    expect((await stage.cli(["trace", "vpc-0a1b"])).out).toContain(`Created by:    Update ${newer}`);
    const nothing = await stage.cli(["trace", "deployment/other"]);
    expect(nothing.code).toBe(3);
    expect(nothing.out).toContain("No record contains deployment/other.");
  });

  test("trace follows an object to the owner that a Stack created", async () => {
    await using stage = await withRecords();
    const resources = [{ urn: urns.app, id: `${stage.namespace}/app` }];
    await stage.record("web-eeeeeeeeeeee", "web", {
      endTime: ago(10),
      content: await encodeContent({ ...emptyContent, resources }),
    });
    const owner = {
      apiVersion: "apps/v1",
      kind: "Deployment",
      name: "app",
      uid: "0b6e6c52-0000-4000-8000-000000000000",
    };
    await patchPod(stage, { ownerReferences: [owner] });
    const document = parseDocument((await stage.cli(["trace", "po/web-workspace-0", "-o", "json"])).out);
    expect(document).toMatchObject({ owners: ["deployment/app"], matches: [{ stack: "web", urn: urns.app }] });
  });

  test("trace finds an object outside of the namespace of its Stack", async () => {
    await using stage = await withRecords();
    const everywhere = async (query: string, ...options: readonly string[]) => {
      const { out } = await cliWith(stage.server.kubeconfig)(["trace", query, "-A", "-o", "json", ...options]);
      const matches = parseDocument(out)["matches"] as readonly { readonly namespace: string; readonly urn: string }[];
      return matches.filter(({ namespace }) => namespace === stage.namespace).map(({ urn }) => urn);
    };
    expect(await everywhere("deployment/app", "-n", "shop")).toEqual([urns.app]);
    expect(await everywhere("shop/app")).toEqual([urns.app]);
    expect(await everywhere("deployment/app", "-n", "elsewhere")).toEqual([]);
  });

  test("diff takes all namespaces, and history does not", async () => {
    await using stage = await withRecords();
    await stage.record("web-dddddddddddd", "web", { type: "preview", result: "succeeded" });
    const cli = cliWith(stage.server.kubeconfig);
    const { items } = parseDocument((await cli(["diff", "-A", "-o", "json"])).out) as { items?: unknown };
    expect(items).toContainEqual(expect.objectContaining({ namespace: stage.namespace, update: "web-dddddddddddd" }));
    for (const args of [
      ["history", "web"],
      ["diff", "web"],
    ]) {
      const { code, err } = await cli([...args, "-A"]);
      expect(code).toBe(2);
      expect(err).toContain("--all-namespaces");
    }
  });

  test("trace knows objects of the operator", async () => {
    await using stage = await withRecords();
    await patchPod(stage, { labels: { "auto.pulumi.com/workspace-name": "web" } });
    expect((await stage.cli(["trace", "pod/web-workspace-0"])).out).toContain("for the workspace of Stack web");
  });

  test("why names the resources that failed", async () => {
    await using stage = await withRecords();
    const lastUpdate = { name: newer, type: "up", state: "failed", failure: "programError", message: "1 error" };
    await stage.stack("shop", {}, stalled("UpdateFailed", "failed", { lastUpdate }));
    expect((await stage.cli(["why", "shop"], { columns: 140 })).out).toContain("create aws:ec2/subnet:Subnet a");
  });
});

const viewer: readonly Rule[] = [
  { apiGroups: ["pulumi.com", "auto.pulumi.com"], resources: ["*"], verbs: ["get", "list", "watch"] },
];

const done: UpdateStatus = {
  startTime: ago(20),
  endTime: ago(5),
  summary: "1 created",
  conditions: [condition("Complete", { status: "True", reason: "Complete", message: "" })],
};

async function finish(stage: CliStage, name: string, status: UpdateStatus): Promise<void> {
  const ref = { name, namespace: stage.namespace };
  await stage.client.patch(updates, ref, { patch: { type: "merge", body: { status } }, subresource: "status" });
}

describe("watch", () => {
  test("reports progress without the log, fills in the record, and ends with the result and the outputs", async () => {
    await using stage = await CliStage.set();
    await stage.stack("web", {}, reconciling("StackProcessing", "running", { currentUpdate: { name: newer } }));
    const progress = {
      time: ago(1),
      created: 1,
      updated: 0,
      deleted: 0,
      replaced: 0,
      unchanged: 0,
      failed: 0,
      percent: 42,
    };
    await stage.update(newer, "web", { status: { startTime: ago(20), progress } });
    const cli = await stage.user("walt", viewer);
    const own = ["-n", stage.namespace];
    await waitFor(async () => (await cli(["get", ...own])).code === 0, { timeoutMs: 30_000, what: "the role" });
    const running = await startUntil(cli, ["watch", "web", ...own], "pods/log");
    await stage.record(newer, "web", { result: "succeeded" });
    await finish(stage, newer, done);
    await stage.status(
      "web",
      ready("", { lastUpdate: { name: newer }, outputs: { url: "https://web", key: "[secret]" } }),
    );
    const { out, code } = await running.result;
    expect(code).toBe(0);
    expect(out).toContain(`you do not have permission to get pods/log in namespace ${stage.namespace}`);
    expect(out).toContain("replace  aws:rds/instance:Instance main");
    expect(out).toContain(`The up ${newer} of Stack web succeeded after 15s: 1 created.`);
    expect(out).toMatch(/key: +\[secret\]/);
  });

  test("waits for the next update, and exits with 1 if it fails", async () => {
    await using stage = await CliStage.set();
    await stage.stack("web", {}, ready());
    const running = await startUntil(stage.cli, ["watch", "web", "-o", "json"], "Waiting for the next one");
    await stage.update(newer, "web", { status: { startTime: ago(20) } });
    const failed = condition("Failed", { status: "True", reason: "UpdateFailed", message: "" });
    await stage.record(newer, "web", {});
    await finish(stage, newer, { ...done, message: "boom", conditions: [...(done.conditions ?? []), failed] });
    await stage.status("web", ready("", { lastUpdate: { name: newer } }));
    const { out, code } = await running.result;
    expect(code).toBe(1);
    expect(parseDocument(out)).toMatchObject({ kind: "RunResult", state: "failed", message: "boom", missingEvents: 0 });
  });

  test("reports that no update started", async () => {
    await using stage = await CliStage.set();
    await stage.stack("web", {}, ready());
    const { err, code } = await stage.cli(["watch", "web", "--timeout", "1s"]);
    expect(code).toBe(1);
    expect(err).toContain("No update of Stack web started within 1s.");
  });
});

describe("preview", () => {
  const childOf = async ({ client, namespace }: CliStage): Promise<Stack | undefined> =>
    (await client.list(stacks, { namespace })).items.find(({ metadata }) => metadata.name?.startsWith("web-preview-"));

  const preview = { name: "web-preview-1", type: "preview", summary: "1 to create" };

  test("runs a child Stack that changes nothing, shows its changes, and deletes it", async () => {
    await using stage = await CliStage.set();
    const source = { projectRepo: "https://git.example.com/web.git", branch: "main" };
    const control = { approval: { required: "Always" }, destroyOnFinalize: true, suspend: true } as const;
    await stage.stack("web", { ...source, ...control }, ready());
    const running = stage.cli(["preview", "web", "--ref", "feature/cache", "-o", "json"]);
    const child = await waitFor(async () => await childOf(stage), { timeoutMs: 30_000, what: "the child" });
    const { name = "", ownerReferences = [] } = child.metadata;
    expect(child.spec).toMatchObject({ ...source, branch: "feature/cache", preview: true, useLocalStackOnly: true });
    expect(Object.keys(child.spec).filter((field) => field in control)).toEqual([]);
    expect(ownerReferences).toMatchObject([{ kind: "Stack", name: "web" }]);
    await stage.record(preview.name, name, { type: "preview", result: "succeeded", stackName: name });
    await stage.status(name, ready("", { lastUpdate: { ...preview, state: "succeeded" } }));
    const { out, code } = await running;
    expect(code).toBe(0);
    expect(parseDocument(out)["items"]).toMatchObject([{ name: "web", what: "preview", update: preview.name }]);
    expect(await childOf(stage)).toBeUndefined();
  });

  test("fails if the preview fails, and deletes the child as well", async () => {
    await using stage = await CliStage.set();
    await stage.stack("web", {}, ready());
    const running = stage.cli(["preview", "web"]);
    const child = await waitFor(async () => await childOf(stage), { timeoutMs: 30_000, what: "the child" });
    const lastUpdate = { ...preview, state: "failed", message: "no such bucket" };
    await stage.status(child.metadata.name ?? "", reconciling("PreviewFailed", "no such bucket", { lastUpdate }));
    const { err, code } = await running;
    expect(code).toBe(1);
    expect(err).toContain("The preview failed: no such bucket");
    expect(await childOf(stage)).toBeUndefined();
  });

  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("deletes the child at %s", async (signal) => {
    await using stage = await CliStage.set();
    await stage.stack("web", {}, ready());
    const running = await startUntil(stage.cli, ["preview", "web"], "Previewing with the Stack");
    running.kill(signal);
    expect((await running.result).code).toBe(130);
    expect(await childOf(stage)).toBeUndefined();
  });
});
