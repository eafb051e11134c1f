/**
 * What works with every supported CLI: `PULUMI=3.105` selects the oldest one (docs/support.md). Programs have no Stash, which
 * old CLIs do not know; a reference to another stack is the resource that every CLI has.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { decodeContent } from "@pko/records";
import type { ConfigItem, Operation } from "@pko/rpc";
import { Gate } from "./gate.ts";
import { program, TestWorkspace } from "./harness.ts";
import { cliPid, killAll, lockHolder, locks, writeLock } from "./locks.ts";

setDefaultTimeout(300_000);

const isOldest = process.env["PULUMI"] === "3.105";
const value = (key: string, content: unknown): ConfigItem => ({ key, value: { from: "value", value: content } });
const config = [value("count", 5), { ...value("token", "canary-config"), secret: true }];
const reference = { type: "pulumi:pulumi:StackReference", properties: { name: "organization/base/dev" } };
const urn = "urn:pulumi:dev::demo::pulumi:pulumi:StackReference::ref";

describe("a stack", () => {
  const other = new TestWorkspace();
  const web = new TestWorkspace({ env: { PULUMI_BACKEND_URL: `file://${other.backend}` } });
  const deployOther = async (run: string, value: string): Promise<void> => {
    await other.prepare(program({ name: "base", outputs: { value } }));
    expect(await other.run(run, { kind: "up" })).toMatchObject({ outcome: "succeeded" });
  };
  const source = program({
    configuration: { count: { type: "Number" }, token: { type: "String" } },
    resources: { ref: reference },
    outputs: {
      count: "${count}",
      list: [1, true, "x"],
      value: '${ref.outputs["value"]}',
      token: "${token}",
    },
  });

  test("is created with a secret configuration value", async () => {
    await other.start();
    await web.start();
    await deployOther("base-1", "one");
    const prepared = await web.prepare(source, { config });
    expect(prepared).toMatchObject({ stack: "dev", changed: { stack: true, config: true } });
    expect(prepared.pulumiVersion).toStartWith(isOldest ? "3.105." : "3.");
    expect((await web.prepare(source, { config })).changed).toMatchObject({ stack: false, config: false });
  });

  test("is previewed", async () => {
    const result = await web.run("preview-1", { kind: "preview" });
    expect(result).toMatchObject({ outcome: "succeeded", operation: "preview", exitCode: 0 });
    expect(result.changes?.["create"]).toBeGreaterThan(0);
    expect(result.outputs?.secretNames).toEqual(["token"]);
  });

  test("is updated, with its outputs", async () => {
    const result = await web.run("up-1", { kind: "up", message: "first update", parallel: 4 });
    expect(result).toMatchObject({ outcome: "succeeded", exitCode: 0, progress: { failed: 0 } });
    expect(JSON.stringify(result)).not.toContain("canary-");
    expect((await web.outputs("up-1")).toSorted((a, b) => a.name.localeCompare(b.name))).toEqual([
      { name: "count", secret: false, known: true, value: 5 },
      { name: "list", secret: false, known: true, value: [1, true, "x"] },
      { name: "token", secret: true, known: true, value: "canary-config" },
      { name: "value", secret: false, known: true, value: "one" },
    ]);
    expect(web.log).not.toContain("canary-config");
  });

  test("is up to date after an update", async () => {
    const result = await web.run("up-2", { kind: "up", expectNoChanges: true, expectNoRefreshChanges: true });
    expect(result).toMatchObject({ outcome: "succeeded", exitCode: 0 });
  });

  test("has a record of a run, with its resources", async () => {
    const content = JSON.stringify(await decodeContent((await web.record("up-1")).content));
    expect(content).toContain(urn);
    expect(content).not.toContain("canary-");
  });

  test("drifts, and a refresh repairs its state", async () => {
    await deployOther("base-2", "two");
    const check = { kind: "refresh", previewOnly: true } as const;
    const drifted = await web.run("check-1", check);
    expect(drifted).toMatchObject({ outcome: "succeeded", operation: "refresh" });
    expect(drifted.drift).toEqual({
      resources: [{ urn, operation: "update", properties: ["outputs.value"] }],
      omitted: 0,
    });
    const refreshed = await web.run("refresh-1", { kind: "refresh", clearPendingCreates: true });
    expect(refreshed).toMatchObject({ outcome: "succeeded", changes: { update: 1 } });
    expect(await web.run("check-2", check)).toMatchObject({ drift: { resources: [], omitted: 0 } });
  });

  test("keeps its secrets in another pod, which does not have its settings", async () => {
    const next = new TestWorkspace({ env: { PULUMI_BACKEND_URL: `file://${other.backend}` } });
    await next.start();
    await next.prepare(source, { config });
    expect(await next.run("up-1", { kind: "up", refresh: true })).toMatchObject({ outcome: "succeeded" });
    expect(await next.outputs("up-1")).toContainEqual({
      name: "token",
      secret: true,
      known: true,
      value: "canary-config",
    });
  });

  test("is destroyed and removed", async () => {
    await web.prepare(source, { config });
    const preview = await web.run("destroy-1", { kind: "destroy", previewOnly: true });
    expect(preview).toMatchObject({ outcome: "succeeded", operation: "destroy" });
    const result = await web.run("destroy-2", { kind: "destroy", refresh: true, remove: true });
    expect(result).toMatchObject({ outcome: "succeeded", exitCode: 0 });
    const failure = await web.tryPrepare(program({}), { create: false });
    expect(failure).toMatchObject({ phase: "stack", reason: "stackNotFound" });
  });
});

test("the first update of a stack changes it, although no change is expected", async () => {
  const web = await new TestWorkspace().start();
  await web.prepare(program({}));
  const result = await web.run("up-1", { kind: "up", expectNoChanges: true });
  expect(result).toMatchObject({ outcome: "failed", error: { class: "unexpectedChanges" } });
});

test("an error of the program is in the result with its line", async () => {
  const web = await new TestWorkspace().start();
  await web.prepare({
    kind: "files",
    files: { "Pulumi.yaml": "name: demo\nruntime: yaml\noutputs:\n  a: ${nope.x}\n" },
  });
  const result = await web.run("up-1", { kind: "up" });
  expect(result).toMatchObject({ outcome: "failed", error: { class: "programError" } });
  expect(result.error?.message).toContain("nope");
  expect(result.error?.lines.join("\n")).toContain("Pulumi.yaml");
});

test("a plugin that cannot be downloaded is reported with its name", async () => {
  const web = await new TestWorkspace().start();
  await web.prepare(program({ resources: { a: { type: "random:RandomString", properties: { length: 5 } } } }));
  const result = await web.run("up-1", { kind: "up" });
  expect(result).toMatchObject({ outcome: "failed", error: { class: "pluginMissing" } });
  expect(result.error?.message).toContain("random");
});

describe("locks", () => {
  /** The update waits for the gate, and holds the lock. */
  const gated = program({ variables: { slow: { "fn::readFile": "./gate" } }, outputs: { word: "${slow}" } });
  const startUpdate = async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(gated);
    const gate = new Gate(web);
    await web.startRun("up-1", { kind: "up" });
    return { web, gate, holder: await lockHolder(web) };
  };

  test("of others block an update, and stay", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({ outputs: { a: 1 } }));
    writeLock(web, { pid: 7, hostname: "laptop", timestamp: "2020-01-01T00:00:00Z" });
    const result = await web.run("up-1", { kind: "up" });
    expect(result).toMatchObject({ outcome: "failed", error: { class: "conflict" } });
    expect(result.error?.message).toContain("someone@laptop (pid 7) since 2020-01-01T00:00:00Z");
    expect(locks(web)).toHaveLength(1);
  });

  test("are removed when a run is cancelled", async () => {
    const { web, holder } = await startUpdate();
    expect(holder.pid).toBe(cliPid(web));
    await web.agent.cancel({ runId: "up-1" });
    expect(await web.result("up-1")).toMatchObject({ outcome: "cancelled", error: { class: "cancelled" } });
    expect(locks(web)).toEqual([]);
  });

  test("of a killed run are removed by the next run", async () => {
    const { web, gate } = await startUpdate();
    await web.kill("SIGKILL");
    killAll(cliPid(web));
    expect(locks(web)).toHaveLength(1);
    await web.start();
    expect(await web.result("up-1")).toMatchObject({ outcome: "interrupted" });
    await web.startRun("up-2", { kind: "up" });
    await gate.open("second");
    expect(await web.result("up-2")).toMatchObject({ outcome: "succeeded" });
    expect(await web.outputs("up-2")).toMatchObject([{ name: "word", value: "second" }]);
    expect(locks(web)).toEqual([]);
  });
});

describe("a feature that the oldest CLI does not have", () => {
  const features: readonly (readonly [needed: string, operation: Operation])[] = [
    ["3.107.0", { kind: "preview", savePlan: true }],
    ["3.112.0", { kind: "destroy", continueOnError: true }],
    ["3.114.0", { kind: "up", continueOnError: true }],
    [
      "3.158.0",
      { kind: "refresh", targetDependents: true, targets: ["urn:pulumi:dev::demo::pulumi:pulumi:Stack::demo-dev"] },
    ],
    ["3.160.0", { kind: "destroy", runProgram: true }],
    ["3.169.0", { kind: "preview", runProgram: true, refresh: true }],
  ];

  test("works, or the result names the version that it needs", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({ outputs: { a: 1 } }));
    expect(await web.run("up", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    for (const [index, [needed, operation]] of features.entries()) {
      const result = await web.run(`run-${index}`, operation);
      if (!isOldest) expect(result).toMatchObject({ outcome: "succeeded" });
      else expect(result).toMatchObject({ outcome: "failed", error: { class: "versionTooLow" } });
      if (isOldest) expect(result.error?.message).toContain(`needs ${needed} or later`);
    }
  });
});
