/**
 * Adjacent versions during a run, with real agent processes and the real CLI: the frozen version 1 with the current
 * version, in both directions. One process is started and one result is reported.
 */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createRepository, serveGit } from "@pko/agent/testing";
import type { Operation, StartRequest } from "@pko/rpc";
import { waitFor } from "@pko/testkit";

import { Gate, gatedProgram } from "../agent/gate.ts";
import { program, stash, TestWorkspace } from "../agent/harness.ts";
import { compileOldAgent, newOperator, oldOperator } from "./harness.ts";

setDefaultTimeout(120_000);

const oldAgent = compileOldAgent();
const onOldAgent = async (): Promise<TestWorkspace> => await new TestWorkspace().start({ command: [oldAgent] });
const onNewAgent = async (): Promise<TestWorkspace> => await new TestWorkspace().start();

const dev = { name: "dev", create: true, config: [], environments: [] };
const source = program({ resources: { a: stash("x") }, outputs: { word: "${a.output}" } });
const lostRuns = [{ from: "2026-01-01T00:00:00Z", to: "2026-01-01T01:00:00Z", hostname: "web-workspace-0", pid: 7 }];

/** The operations for which the CLI was started; its other commands change nothing. */
function operations(web: TestWorkspace): string[] {
  return web.cliCalls().flatMap((call) => /(?:^|\s)(up|preview|refresh|destroy)(?:\s|$)/.exec(call)?.[1] ?? []);
}

const runFolders = (web: TestWorkspace): string[] => readdirSync(join(web.share, "runs"));

describe("upgrade: an old agent and a new operator", () => {
  test("a run that the old operator started is followed to its end: one start, one result", async () => {
    const web = await onOldAgent();
    const gate = await startedByOldOperator(web);

    const after = newOperator(web);
    // The new operator sends another operation, and fields that the old agent rejects.
    const operation: Operation = { kind: "up", message: "by the new operator", parallel: 4 };
    await after.following({ runId: "up-1", operation, stack: "dev", lostRuns });
    await gate.open("through");
    const { result, outputs } = await after.finished("up-1");

    expect(result).toMatchObject({ outcome: "succeeded", operation: "up", stack: "dev" });
    expect(outputs).toMatchObject([{ name: "word", value: "through" }]);
    expect(operations(web)).toEqual(["up"]);
    expect(runFolders(web)).toEqual(["up-1"]);
  });

  test("a run is followed although the old agent could not start it with options of a later version", async () => {
    const web = await onOldAgent();
    const gate = await startedByOldOperator(web);
    const operator = newOperator(web);
    const operation = { kind: "up", estimate: true } as Operation;
    await operator.following({ runId: "up-1", operation });
    await gate.open("through");
    expect((await operator.finished("up-1")).result).toMatchObject({ outcome: "succeeded" });
    const refused = await operator.refused({ runId: "up-2", operation });
    expect(refused).toMatchObject({ code: "other" });
    expect(JSON.stringify(refused)).toContain("does not support operation.estimate");
    expect(operations(web)).toEqual(["up"]);
  });

  test("a run that the old operator started is cancelled", async () => {
    const web = await onOldAgent();
    await startedByOldOperator(web);
    await waitFor(() => operations(web).length > 0, { what: "the CLI to be started" });
    const after = newOperator(web);
    after.cancel("up-1");
    expect((await after.finished("up-1")).result).toMatchObject({ outcome: "cancelled" });
    expect(operations(web)).toEqual(["up"]);
  });

  test("the old agent compares no commits, so that what has changed is unknown and the update runs", async () => {
    const web = await onOldAgent();
    const repository = createRepository(join(web.root, "git"), "app");
    const git = serveGit(join(web.root, "git"));
    afterAll(() => git.stop());
    const [earlier, commit] = ["one", "two"].map((text) =>
      repository.commit({ "Pulumi.yaml": JSON.stringify({ name: "demo", runtime: "yaml" }), "README.md": text }),
    ) as [string, string];
    const url = `http://127.0.0.1:${git.port}/app.git`;
    const compareWith = { commit: earlier, pathFilters: ["Pulumi.yaml"] };
    const request = { source: { kind: "git", url, commit, compareWith } as const, stacks: [dev] };
    const old = await newOperator(web).prepared(request);
    expect(old).toMatchObject({ result: { ok: true, prepared: { revision: commit } } });
    expect(JSON.stringify(old)).not.toContain("unchangedSince");
    const current = await newOperator(await onNewAgent()).prepared(request);
    expect(current).toMatchObject({ result: { ok: true, prepared: { unchangedSince: earlier } } });
  });

  test("the old agent prepares, updates and destroys for the new operator", async () => {
    const web = await onOldAgent();
    const operator = newOperator(web);
    expect(await operator.prepared({ source, stacks: [dev] })).toMatchObject({ result: { ok: true } });
    await web.run("up-1", { kind: "up" });
    const start: StartRequest = { runId: "up-2", operation: { kind: "up" }, stack: "dev", lostRuns };
    // It names what was prepared, which the old agent does not know.
    await operator.following(start);
    expect(await operator.finished("up-2")).toMatchObject({
      result: { outcome: "succeeded" },
      outputs: [{ value: "x" }],
    });
    // It is older than records.
    expect(await web.agent.record({ runId: "up-2" })).toMatchObject({ ok: false, error: { code: "unknownMethod" } });
    expect(await web.run("destroy-3", { kind: "destroy" })).toMatchObject({ outcome: "succeeded" });
    expect(operations(web)).toEqual(["up", "up", "destroy"]);
  });

  test("a request that the old agent does not support is rejected with the remedy and changes nothing", async () => {
    const web = await onOldAgent();
    const operator = newOperator(web);
    const refused = await operator.prepared({ source, stacks: [dev, { ...dev, name: "prod" }] });
    expect(refused).toMatchObject({ result: { ok: false } });
    expect(JSON.stringify(refused)).toMatch(
      /older than the operator .* exactly one stack per Workspace; .* delete the pod/,
    );
    await operator.prepared({ source, stacks: [dev] });
    const start = await web.agent.start({ runId: "destroy-1", operation: { kind: "destroy" }, stack: "prod" });
    expect(start.ok || start.error.code).toBe("unsupported");
    expect(!start.ok && start.error.message).toContain("can run only the stack dev, not prod");
    expect(operations(web)).toEqual([]);
  });
});

describe("rollback: a new agent and an old operator", () => {
  test("a run that the new operator started is followed to its end: one start, one result", async () => {
    const web = await onNewAgent();
    const before = newOperator(web);
    await before.prepared({ source: gatedProgram, stacks: [dev] });
    const gate = new Gate(web);
    const operation: Operation = { kind: "up", message: "by the new operator" };
    await before.following({ runId: "up-1", operation, stack: "dev", lostRuns });
    await before.stop();

    const after = oldOperator(web);
    await after.following({ runId: "up-1", operation: { kind: "up", message: "by the old operator" } });
    await gate.open("through");
    const { result, outputs } = await after.finished("up-1");

    expect(result).toMatchObject({ outcome: "succeeded", operation: "up", stack: "dev" });
    expect(outputs).toMatchObject([{ name: "word", value: "through" }]);
    expect(operations(web)).toEqual(["up"]);
    expect(runFolders(web)).toEqual(["up-1"]);
  });

  test("the old operator gets the result despite events that it does not know", async () => {
    const web = await onNewAgent();
    await web.prepare(source);
    await web.run("up-1", { kind: "up" });
    addEventOfLaterKind(web, "up-1");
    expect((await oldOperator(web).finished("up-1")).result).toMatchObject({ outcome: "succeeded" });
    expect((await newOperator(web).finished("up-1")).result).toMatchObject({ outcome: "succeeded" });
    expect(operations(web)).toEqual(["up"]);
  });

  test("the new agent prepares, updates and destroys for the old operator", async () => {
    const web = await onNewAgent();
    const operator = oldOperator(web);
    expect(await operator.prepared({ source, stack: dev })).toMatchObject({ result: { ok: true } });
    await operator.following({ runId: "up-1", operation: { kind: "up" }, lostRuns: [{ from: "a", to: "b" }] });
    expect(await operator.finished("up-1")).toMatchObject({
      result: { outcome: "succeeded" },
      outputs: [{ value: "x" }],
    });
    await operator.following({ runId: "destroy-2", operation: { kind: "destroy", remove: true } });
    expect((await operator.finished("destroy-2")).result).toMatchObject({ outcome: "succeeded" });
    expect(operations(web)).toEqual(["up", "destroy"]);
  });
});

describe("an agent and the operator of the next version", () => {
  test("a known run is returned regardless of the rest of the request, and unknown fields are ignored", async () => {
    const web = await onNewAgent();
    await web.prepare(gatedProgram);
    const gate = new Gate(web);
    const start = async (operation: object, more: object = {}) =>
      await web.agent.start({ runId: "up-1", operation: operation as Operation, ...more });
    const fresh = await start({ kind: "up", message: "x", estimate: true }, { priority: 3 });
    expect(fresh).toMatchObject({ ok: true, value: { state: "started" } });
    expect(await start({ kind: "reconcile" })).toMatchObject({ ok: true, value: { state: "running" } });
    await gate.open("through");
    expect(await web.result("up-1")).toMatchObject({ outcome: "succeeded" });
    expect(await start({ kind: "reconcile" })).toMatchObject({ ok: true, value: { state: "finished" } });
    expect(operations(web)).toEqual(["up"]);
  });
});

/** Starts the run up-1, which waits at the gate, and stops the operator. */
async function startedByOldOperator(web: TestWorkspace): Promise<Gate> {
  const operator = oldOperator(web);
  await operator.prepared({ source: gatedProgram, stack: dev });
  const gate = new Gate(web);
  await operator.following({ runId: "up-1", operation: { kind: "up", message: "by the old operator" } });
  await operator.stop();
  return gate;
}

/** Adds an event that an agent of a later version would write. */
function addEventOfLaterKind(web: TestWorkspace, runId: string): void {
  const file = join(web.share, "runs", runId, "events.ndjson");
  const seq = readFileSync(file, "utf8").trimEnd().split("\n").length + 1;
  const event = { type: "event", seq, time: "2026-01-01T00:00:00Z", event: { kind: "forecast", resources: 7 } };
  appendFileSync(file, `${JSON.stringify(event)}\n`);
}
