import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { protocolVersion, type PrepareRequest } from "@pko/rpc";

import { program, pulumi, stash, TestWorkspace } from "./harness.ts";

setDefaultTimeout(300_000);

describe("operations on a stack", () => {
  const web = new TestWorkspace();
  const source = (input: string) =>
    program({
      resources: { a: stash(input) },
      outputs: { plain: "${a.output}", list: [1, true, "x"], token: { "fn::secret": "canary-output" } },
    });

  test("preparing creates the stack, and repeats nothing", async () => {
    await web.start();
    const first = await web.prepare(source("one"));
    expect(first).toMatchObject({
      project: { name: "demo", runtime: "yaml" },
      stack: "dev",
      pulumiVersion: "3.259.0",
      changed: { source: true, dependencies: false, stack: true },
    });
    const calls = web.cliCalls().length;
    const again = await web.prepare(source("one"));
    expect(again.changed).toEqual({ source: false, dependencies: false, stack: false, config: false });
    expect(again.revision).toBe(first.revision);
    expect(web.cliCalls()).toHaveLength(calls);
  });

  test("a preview changes nothing and reports the changes", async () => {
    const result = await web.run("preview-1", { kind: "preview" });
    expect(result).toMatchObject({ outcome: "succeeded", operation: "preview", changes: { create: 2 } });
    expect(result.output.tail).toContain("Previewing update (dev)");
    expect(result.outputs?.secretNames).toEqual(["token"]);
    expect((await web.outputs("preview-1")).find(({ name }) => name === "token")).toEqual({
      name: "token",
      secret: true,
      known: false,
    });
  });

  test("an update reports each resource as it changes, then its result", async () => {
    const calls = web.cliCalls().length;
    await web.startRun("up-1", { kind: "up", message: "first update" });
    const updates = await web.updates("up-1");
    const seqs = updates.flatMap((update) => (update.type === "event" ? [update.seq] : []));
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    const resources = updates.flatMap((update) =>
      update.type === "event" && update.event.kind === "resource" ? [`${update.event.phase} ${update.event.urn}`] : [],
    );
    expect(resources).toContain("started urn:pulumi:dev::demo::pulumi:index:Stash::a");
    expect(resources).toContain("finished urn:pulumi:dev::demo::pulumi:index:Stash::a");
    const last = updates.at(-1);
    expect(last?.type === "result" && last.result).toMatchObject({
      outcome: "succeeded",
      exitCode: 0,
      changes: { create: 2 },
      progress: { created: 2, failed: 0 },
    });
    // The CLI was started once, for the update itself.
    expect(web.cliCalls()).toHaveLength(calls + 1);
  });

  test("a replay from any event has the same events", async () => {
    const whole = await web.updates("up-1");
    const part = await web.updates("up-1", 4);
    const seqs = (updates: typeof whole) => updates.flatMap((update) => (update.type === "event" ? [update.seq] : []));
    expect(seqs(part)).toEqual(seqs(whole).filter((seq) => seq >= 4));
    expect(part.at(-1)).toEqual(whole.at(-1));
  });

  test("starting a run twice returns the existing run", async () => {
    const calls = web.cliCalls().length;
    const again = await web.agent.start({ runId: "up-1", operation: { kind: "up", message: "first update" } });
    expect(again.ok && again.value.state).toBe("finished");
    // An operator of another version may describe the same run differently.
    const other = await web.agent.start({ runId: "up-1", operation: { kind: "destroy" } });
    expect(other.ok && other.value).toMatchObject({ state: "finished", result: { operation: "up" } });
    expect(web.cliCalls()).toHaveLength(calls);
  });

  test("outputs have their values, and secret ones are marked", async () => {
    expect(await web.outputs("up-1")).toEqual([
      { name: "list", secret: false, known: true, value: [1, true, "x"] },
      { name: "plain", secret: false, known: true, value: "one" },
      { name: "token", secret: true, known: true, value: "canary-output" },
    ]);
  });

  test("a new program runs in the same workspace without selecting or configuring the stack again", async () => {
    const calls = web.cliCalls().length;
    const prepared = await web.prepare(source("two"));
    expect(prepared.changed).toEqual({ source: true, dependencies: false, stack: false, config: false });
    const result = await web.run("up-2", { kind: "up" });
    expect(result).toMatchObject({
      outcome: "succeeded",
      changes: { same: 1, update: 1 },
      progress: { updated: 1, unchanged: 1 },
    });
    expect(web.cliCalls()).toHaveLength(calls + 1);
  });

  test("a refresh and an update may expect no changes", async () => {
    expect(await web.run("refresh-1", { kind: "refresh" })).toMatchObject({
      outcome: "succeeded",
      changes: { same: 2 },
    });
    const both = { kind: "up", refresh: true, expectNoRefreshChanges: true } as const;
    await web.startRun("up-3", both);
    const steps = (await web.updates("up-3")).flatMap((update) =>
      update.type === "event" && update.event.kind === "step" ? [update.event.name] : [],
    );
    expect(steps).toEqual(["refresh", "up"]);
    await web.prepare(source("three"));
    const failed = await web.run("up-4", { kind: "preview", expectNoChanges: true });
    expect(failed).toMatchObject({ outcome: "failed", error: { class: "unexpectedChanges" } });
  });

  test("targets limit an update", async () => {
    const two = program({ resources: { a: stash("three"), b: stash("new") } });
    await web.prepare(two);
    const result = await web.run("up-5", { kind: "up", targets: ["urn:pulumi:dev::demo::pulumi:index:Stash::b"] });
    expect(result).toMatchObject({ outcome: "succeeded" });
    expect(result.progress.created).toBe(1);
  });

  test("a replacement counts once", async () => {
    const urn = "urn:pulumi:dev::demo::pulumi:index:Stash::b";
    const result = await web.run("up-replace", { kind: "up", replace: [urn] });
    expect(result).toMatchObject({ outcome: "succeeded", progress: { created: 0, deleted: 0, replaced: 1 } });
    expect(result.changes).toMatchObject({ replace: 1 });
  });

  test("a destroy removes the stack if requested, and the next preparation creates it again", async () => {
    const destroyed = await web.run("destroy-1", { kind: "destroy", remove: true });
    expect(destroyed).toMatchObject({ outcome: "succeeded", operation: "destroy" });
    expect(destroyed.progress.deleted).toBeGreaterThan(1);
    expect(existsSync(join(web.backend, ".pulumi/stacks/demo/dev.json"))).toBe(false);
    expect(await web.outputs("destroy-1")).toEqual([]);
    const unprepared = await web.agent.start({ runId: "up-6", operation: { kind: "up" } });
    expect(unprepared.ok || unprepared.error.code).toBe("unprepared");
    expect((await web.prepare(source("four"))).changed).toMatchObject({ source: true, stack: true });
    expect(await web.run("up-7", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
  });

  test("a destroy keeps the empty stack, which another workspace can use", async () => {
    expect(await web.run("destroy-kept", { kind: "destroy" })).toMatchObject({ outcome: "succeeded" });
    expect(existsSync(join(web.backend, ".pulumi/stacks/demo/dev.json"))).toBe(true);
    const next = await new TestWorkspace({ env: { PULUMI_BACKEND_URL: `file://${web.backend}` } }).start();
    const config = [{ key: "token", value: { from: "value" as const, value: "canary-config" }, secret: true }];
    await next.prepare(source("five"), { config });
    expect(await next.run("up-1", { kind: "up" })).toMatchObject({ outcome: "succeeded", changes: { create: 2 } });
  });

  test("a stack whose source no longer exists can be destroyed by its project's name", async () => {
    await web.prepare({ kind: "project", name: "demo", runtime: "yaml" });
    const destroyed = await web.run("destroy-2", { kind: "destroy" });
    expect(destroyed).toMatchObject({ outcome: "succeeded", changes: { delete: 2 } });
  });

  test("info reports versions and what is prepared", async () => {
    const info = await web.agent.info();
    expect(info.ok && info.value).toMatchObject({
      protocol: protocolVersion,
      pulumiVersion: "3.259.0",
      stopping: false,
      prepared: { stack: "dev" },
    });
  });

  test("the version of a known executable is not read from it", async () => {
    const prepare = async (part: Partial<PrepareRequest>) => {
      const agent = (await new TestWorkspace({ flags: ["--pulumi", pulumi] }).start()).agent;
      const project: PrepareRequest = { source: { kind: "project", name: "demo", runtime: "yaml" }, stacks: [] };
      const reply = await agent.prepare({ ...project, ...part });
      return reply.ok && reply.value.ok ? reply.value.prepared : undefined;
    };
    const first = await prepare({});
    expect(first?.pulumiVersion).toBe("3.259.0");
    const knownClis = [{ cli: first?.cli ?? "", version: "3.300.0" }];
    expect(await prepare({ knownClis })).toMatchObject({ pulumiVersion: "3.300.0", cli: first?.cli });
  });

  test("requests about unknown runs return notFound", async () => {
    for (const reply of [await web.agent.cancel({ runId: "nope" }), await web.agent.outputs({ runId: "nope" })]) {
      expect(reply.ok || reply.error.code).toBe("notFound");
    }
    expect(await web.updates("nope")).toMatchObject([{ type: "lost", error: { code: "notFound" } }]);
    expect(await web.agent.cancel({ runId: "up-7" })).toEqual({ ok: true, value: { state: "finished" } });
    const failed = await web.agent.outputs({ runId: "up-4" });
    expect(failed.ok || failed.error.code).toBe("unprepared");
  });

  test("no secret is in the log or in the files of runs", async () => {
    expect(web.log).not.toContain("canary");
    for (const run of readdirSync(join(web.share, "runs"))) {
      for (const file of readdirSync(join(web.share, "runs", run))) {
        expect(readFileSync(join(web.share, "runs", run, file), "utf8")).not.toContain("canary");
      }
    }
  });
});

describe("the pod's log", () => {
  const source = program({ resources: { a: stash("x") }, outputs: { token: { "fn::secret": "canary-output" } } });
  const config = [{ key: "token", value: { from: "value" as const, value: "canary-config" }, secret: true }];
  /** A line of the CLI's own logger, with its level. */
  const verbose = /^ ?\{"time":.*"level":"INFO",.*"v":\d+\}$/m;

  test("has the CLI's output as plain lines, with its verbose log up to level 8", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(source, { config });
    await web.run("quiet", { kind: "up" });
    await web.logged(/^Updating \(dev\):$/m);
    await web.logged(/^ \+ {2}pulumi:index:Stash a created/m);
    await web.logged(/^ {4}token: \[secret\]$/m);
    expect(web.log).not.toMatch(verbose);
    await web.run("verbose", { kind: "refresh", logLevel: 8 });
    await web.logged(verbose);
    expect(web.log).not.toContain("canary");
  });

  test("names the file in the pod with a log of level 9 and above", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(source, { config });
    await web.run("debug", { kind: "up", logLevel: 9 });
    await web.logged(/^Updating \(dev\):$/m);
    await web.logged(/"msg":"verbose log is in a file in the pod".*\n/);
    expect(web.log).not.toMatch(verbose);
    const file = join(web.share, "runs/debug/stderr-0.log");
    const hint = web.log.split("\n").find((line) => line.includes('"msg":"verbose log is in a file in the pod"'));
    expect(hint).toContain(`"run":"debug","file":"${file}"`);
    expect(readFileSync(file, "utf8")).toMatch(verbose);
  });

  test("keeps a log of level 9 out of the result of a failed run, except for the CLI's own errors", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(source, { config });
    const folder = join(web.backend, ".pulumi/locks/organization/demo/dev");
    mkdirSync(folder, { recursive: true });
    const holder = { pid: 7, username: "someone", hostname: "laptop", timestamp: "2020-01-01T00:00:00Z" };
    writeFileSync(join(folder, "00000000-0000-4000-8000-000000000000.json"), JSON.stringify(holder));
    const result = await web.run("debug", { kind: "up", logLevel: 9 });
    expect(readFileSync(join(web.share, "runs/debug/stderr-0.log"), "utf8")).toMatch(verbose);
    expect(result).toMatchObject({ outcome: "failed", error: { class: "conflict" } });
    expect(result.error?.message).toContain("someone@laptop");
    expect(result.error?.lines.join("\n")).toContain("error: the stack is currently locked by 1 lock(s)");
    expect(result.error?.lines.join("\n")).not.toMatch(verbose);
    expect(result.output.tail).not.toMatch(verbose);
  });
});

describe("stacks that must exist", () => {
  test("are not created", async () => {
    const web = await new TestWorkspace().start();
    const failure = await web.tryPrepare(program({}), { create: false });
    expect(failure).toMatchObject({ phase: "stack", reason: "stackNotFound" });
    expect(readdirSync(web.backend)).not.toContain("demo");
    const unprepared = await web.agent.start({ runId: "up-1", operation: { kind: "up" } });
    expect(unprepared.ok || unprepared.error.code).toBe("unprepared");
  });

  test("a stack that was removed outside the agent is reported as missing, then created again", async () => {
    const web = await new TestWorkspace().start();
    const source = program({ resources: { a: stash("x") } });
    await web.prepare(source);
    const stacks = join(web.backend, ".pulumi/stacks/demo");
    rmSync(stacks, { recursive: true });
    mkdirSync(stacks);
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({
      outcome: "failed",
      error: { class: "stackNotFound" },
    });
    await web.prepare(source);
    expect(await web.run("up-2", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
  });
});

describe("the environment file", () => {
  test("is read before every command", async () => {
    const folder = mkdtempSync(join(tmpdir(), "pko-env-"));
    afterAll(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "env");
    const web = new TestWorkspace({ env: { PULUMI_ENV: file, PULUMI_CONFIG_PASSPHRASE: "wrong-canary" } });
    writeFileSync(file, "export PULUMI_CONFIG_PASSPHRASE='from the file'\n");
    await web.start();
    const item = { key: "token", secret: true, value: { from: "value" as const, value: "canary-config" } };
    await web.prepare(program({ resources: { a: stash("${token}") }, config: { token: { type: "string" } } }), {
      config: [item],
    });
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    writeFileSync(file, "PULUMI_CONFIG_PASSPHRASE=another\n");
    const failed = await web.run("up-2", { kind: "up" });
    expect(failed.outcome).toBe("failed");
    expect(failed.error?.message).toMatch(/passphrase/);
  });
});
