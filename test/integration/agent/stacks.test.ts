/** Workspaces that list no stack, one or several: which stack a run uses, and what stacks do not share. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigItem, Prepared, StackSettings } from "@pko/rpc";
import { waitFor } from "@pko/testkit";
import { Gate, gatedProgram, untilStateIsWritten } from "./gate.ts";
import { program, pulumi, stash, TestWorkspace, toolFolders } from "./harness.ts";

setDefaultTimeout(180_000);

const value = (key: string, content: unknown, more: Partial<ConfigItem> = {}): ConfigItem => ({
  key,
  value: { from: "value", value: content },
  ...more,
});

/** The CLI and its language host, which has its own process group and would otherwise read what is meant for the next run. */
function killAllIn(folder: string): void {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)) process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended, or is not ours.
    }
  }
}

/** A program that outputs its configuration. */
const echo = program(
  {
    config: { name: { type: "string", default: "unnamed" }, token: { type: "string", default: "none" } },
    resources: { a: stash("x") },
    outputs: { name: "${name}", token: "${token}", stack: "${pulumi.stack}" },
  },
  { "Pulumi.repo.yaml": "config:\n  demo:name: of the repository\n" },
);

async function prepareStacks(web: TestWorkspace, stacks: readonly Partial<StackSettings>[]): Promise<Prepared> {
  const prepared = await web.tryPrepareStacks(echo, stacks);
  if ("reason" in prepared) throw new Error(`${prepared.reason}: ${prepared.message}`);
  return prepared;
}

async function readOutputs(web: TestWorkspace, runId: string): Promise<Record<string, unknown>> {
  return Object.fromEntries((await web.outputs(runId)).map(({ name, value: content }) => [name, content]));
}

const up = { kind: "up" } as const;
const stateFile = (web: TestWorkspace, stack: string): string =>
  join(web.backend, ".pulumi/stacks/demo", `${stack}.json`);
const hasStack = (web: TestWorkspace, stack: string): boolean => existsSync(stateFile(web, stack));

function settingsFiles(web: TestWorkspace): string[] {
  const folder = join(web.share, "agent/stacks");
  return readdirSync(folder).map((name) => readFileSync(join(folder, name, "settings.yaml"), "utf8"));
}

function locks(web: TestWorkspace, stack: string): string[] {
  const folder = join(web.backend, ".pulumi/locks/organization/demo", stack);
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
}

/** Creates a stack like a user, without the agent. */
function createStack(web: TestWorkspace, stack: string): void {
  execFileSync(pulumi, ["--non-interactive", "stack", "init", stack], {
    cwd: join(web.share, "workspace"),
    stdio: "ignore",
    env: {
      PATH: `${toolFolders.join(":")}:${process.env["PATH"] ?? ""}`,
      HOME: join(web.root, "home"),
      PULUMI_BACKEND_URL: `file://${web.backend}`,
      PULUMI_CONFIG_PASSPHRASE: "canary-passphrase",
      PULUMI_SKIP_UPDATE_CHECK: "true",
    },
  });
}

describe("a workspace that lists no stacks", () => {
  test("is prepared without one, and each run names its stack", async () => {
    const web = await new TestWorkspace().start();
    await prepareStacks(web, []);
    expect(web.cliCalls().filter((call) => call.includes("stack"))).toEqual([]);
    createStack(web, "byhand");
    createStack(web, "repo");
    expect(await web.run("up-1", up, { stack: "byhand" })).toMatchObject({ outcome: "succeeded", stack: "byhand" });
    expect(await readOutputs(web, "up-1")).toEqual({ name: "unnamed", token: "none", stack: "byhand" });

    await web.kill("SIGKILL");
    await web.start();
    expect(await web.run("up-2", up, { stack: "repo" })).toMatchObject({ outcome: "succeeded", stack: "repo" });
    expect(await readOutputs(web, "up-2")).toMatchObject({ name: "of the repository", stack: "repo" });
    expect(await web.run("up-3", { ...up, expectNoChanges: true }, { stack: "byhand" })).toMatchObject({
      outcome: "succeeded",
    });
  });

  test("never creates a stack, and reports how to create it", async () => {
    const web = await new TestWorkspace().start();
    await prepareStacks(web, []);
    const result = await web.run("up-1", up, { stack: "dve" });
    expect(result).toMatchObject({ outcome: "failed", stack: "dve", error: { class: "stackNotFound" } });
    expect(result.error?.message).toBe(
      "the stack does not exist, and the operator creates only stacks that the Workspace lists with create: true; " +
        "add it to the Workspace's spec.stacks, or create it with `pulumi stack init`",
    );
    expect(hasStack(web, "dve")).toBe(false);
    // The workspace is still prepared.
    createStack(web, "dve");
    expect(await web.run("up-2", up, { stack: "dve" })).toMatchObject({ outcome: "succeeded" });
  });

  test("rejects an invalid stack name as an invalid request", async () => {
    const web = await new TestWorkspace().start();
    await prepareStacks(web, []);
    const rejected = await web.agent.start({ runId: "up-1", stack: "../dev", operation: up });
    expect(rejected).toMatchObject({ ok: false, error: { code: "invalidRequest" } });
    expect(readdirSync(join(web.share, "runs"))).toEqual([]);
  });

  test("must be prepared again after a run removed a stack, and then has the source's settings for it", async () => {
    const web = await new TestWorkspace().start();
    await prepareStacks(web, []);
    createStack(web, "repo");
    await web.run("up-1", up, { stack: "repo" });
    expect(await web.run("destroy-1", { kind: "destroy", remove: true }, { stack: "repo" })).toMatchObject({
      outcome: "succeeded",
    });
    expect(hasStack(web, "repo")).toBe(false);
    const unprepared = await web.agent.start({ runId: "up-2", stack: "repo", operation: up });
    expect(unprepared).toMatchObject({ ok: false, error: { code: "unprepared" } });
    await prepareStacks(web, []);
    expect(hasStack(web, "repo")).toBe(false);
    createStack(web, "repo");
    await web.run("up-3", up, { stack: "repo" });
    expect(await readOutputs(web, "up-3")).toMatchObject({ name: "of the repository" });
  });
});

describe("a workspace that lists two stacks", () => {
  const dev = {
    name: "dev",
    config: [value("name", "development"), value("token", "canary-dev", { secret: true })],
  };
  const prod = { name: "prod", config: [value("name", "production")] };

  test("keeps their configuration and secrets separate", async () => {
    const web = await new TestWorkspace().start();
    await prepareStacks(web, [dev, prod]);
    expect(hasStack(web, "dev") && hasStack(web, "prod")).toBe(true);
    expect(await web.run("up-1", up, { stack: "prod" })).toMatchObject({ outcome: "succeeded", stack: "prod" });
    expect(await web.run("up-2", up, { stack: "dev" })).toMatchObject({ outcome: "succeeded", stack: "dev" });
    expect(await readOutputs(web, "up-1")).toEqual({ name: "production", token: "none", stack: "prod" });
    expect(await readOutputs(web, "up-2")).toEqual({ name: "development", token: "canary-dev", stack: "dev" });
    expect((await web.outputs("up-2")).find(({ name }) => name === "token")).toMatchObject({ secret: true });
    expect((await web.outputs("up-1")).find(({ name }) => name === "token")).toMatchObject({ secret: false });
    expect(web.log).not.toContain("canary");
    // The ciphertext of one stack is not in the settings of the other.
    const settings = settingsFiles(web);
    expect(settings.filter((text) => text.includes("secure:"))).toHaveLength(1);
    expect(settings.filter((text) => text.includes("production"))).toHaveLength(1);
  });

  test("repeats nothing after a restart of the agent, and runs continue to work", async () => {
    const web = await new TestWorkspace().start();
    await prepareStacks(web, [dev, prod]);
    await web.kill("SIGKILL");
    await web.start();
    expect(await web.run("up-1", up, { stack: "prod" })).toMatchObject({ outcome: "succeeded" });
    const before = web.cliCalls().filter((call) => call.includes("stack select")).length;
    expect(before).toBe(2);
    const again = await web.tryPrepareStacks(echo, [dev, prod]);
    expect(again).toMatchObject({ changed: { source: false, stack: false } });
    expect(web.cliCalls().filter((call) => call.includes("stack select"))).toHaveLength(before);
    expect(await web.run("up-2", up, { stack: "dev" })).toMatchObject({ outcome: "succeeded" });
    expect(await readOutputs(web, "up-2")).toMatchObject({ name: "development", token: "canary-dev" });
  });

  test("runs no other stack, and no stack without a name", async () => {
    const web = await new TestWorkspace().start();
    await prepareStacks(web, [dev, prod]);
    createStack(web, "other");
    const unlisted = await web.agent.start({ runId: "up-1", stack: "other", operation: up });
    expect(unlisted).toMatchObject({
      ok: false,
      error: { code: "unprepared", message: "the workspace is prepared for dev, prod, not for other" },
    });
    // Like operators of version 1.
    const unnamed = await web.agent.start({ runId: "up-2", operation: up });
    expect(unnamed).toMatchObject({ ok: false, error: { code: "unprepared" } });
  });

  test("starts no run with what another request has prepared", async () => {
    const web = await new TestWorkspace().start();
    const wanted = await prepareStacks(web, [dev, prod]);
    const start = (runId: string, preparation = "") =>
      web.agent.start({ runId, stack: "dev", operation: up, preparation });
    // As if a request had arrived after the one that replaced it.
    await prepareStacks(web, [dev]);
    const refused = { ok: false, error: { code: "unprepared", message: "the workspace is not prepared for this run" } };
    expect(await start("up-1", wanted.preparation)).toMatchObject(refused);
    // Of an operator that has not prepared anything since it started.
    expect(await start("up-1")).toMatchObject(refused);
    const { preparation } = await prepareStacks(web, [dev, prod]);
    expect(preparation).toBe(wanted.preparation);
    await web.kill("SIGKILL");
    await web.start();
    expect(await start("up-1", preparation)).toMatchObject({ ok: true, value: { state: "started" } });
    expect(await web.result("up-1")).toMatchObject({ outcome: "succeeded" });
    // It is attached to, whatever is prepared.
    expect(await start("up-1")).toMatchObject({ ok: true, value: { state: "finished" } });
  });

  test("names the stack that cannot be prepared", async () => {
    const web = await new TestWorkspace().start();
    const missing = { name: "missing", create: false };
    const notFound = await web.tryPrepareStacks(echo, [dev, missing]);
    expect(notFound).toMatchObject({ phase: "stack", reason: "stackNotFound" });
    expect("message" in notFound && notFound.message).toContain("the stack missing cannot be selected");
    const broken = { ...prod, config: [{ key: "name", value: { from: "env", name: "NOPE" } } as const] };
    const unset = await web.tryPrepareStacks(echo, [dev, broken]);
    expect(unset).toMatchObject({ phase: "config", reason: "configInvalid" });
    expect("message" in unset && unset.message).toContain(
      "the stack prod cannot be configured: the configuration value name cannot be used: the environment variable NOPE is not set",
    );
    await prepareStacks(web, [dev, prod]);
    expect(await web.run("up-1", up, { stack: "prod" })).toMatchObject({ outcome: "succeeded" });
  });

  test("keeps the other stack when a run removes one, and the next preparation creates that one again", async () => {
    const web = await new TestWorkspace().start();
    await prepareStacks(web, [dev, prod]);
    await web.run("up-1", up, { stack: "dev" });
    await web.run("up-2", up, { stack: "prod" });
    expect(await web.run("destroy-1", { kind: "destroy", remove: true }, { stack: "dev" })).toMatchObject({
      outcome: "succeeded",
      stack: "dev",
    });
    expect(hasStack(web, "dev")).toBe(false);
    expect(await web.run("up-3", { ...up, expectNoChanges: true }, { stack: "prod" })).toMatchObject({
      outcome: "succeeded",
    });
    expect(hasStack(web, "dev")).toBe(false);
    const unprepared = await web.agent.start({ runId: "up-4", stack: "dev", operation: up });
    expect(unprepared).toMatchObject({ ok: false, error: { code: "unprepared" } });
    await prepareStacks(web, [dev, prod]);
    expect(await web.run("up-5", up, { stack: "dev" })).toMatchObject({ outcome: "succeeded", changes: { create: 2 } });
  });

  test("keeps their secrets providers and environments separate, and names the stack in a warning", async () => {
    const web = await new TestWorkspace().start();
    const plain = { name: "plain", secretsProvider: "default" };
    await prepareStacks(web, [{ name: "dev", secretsProvider: "passphrase", environments: ["base"] }, plain]);
    const selections = web.cliCalls().filter((call) => call.includes("stack select"));
    expect(selections.map((call) => /--stack (\S+) --create (\S+)/.exec(call)?.slice(1))).toEqual([
      ["dev", "--secrets-provider=passphrase"],
      ["plain", "--secrets-provider=default"],
    ]);
    expect(settingsFiles(web).filter((text) => text.includes("base"))).toHaveLength(1);
    const key = "awskms://alias/pulumi?region=eu-west-1";
    const prepared = await web.tryPrepareStacks(echo, [{ name: "dev" }, { name: "plain", secretsProvider: key }]);
    expect("warning" in prepared && prepared.warning).toStartWith("plain: the stack's secrets are encrypted by");
  });

  test("runs one at a time across all stacks", async () => {
    const web = await new TestWorkspace().start();
    await web.tryPrepareStacks(gatedProgram, [{ name: "dev" }, { name: "prod" }]);
    const gate = new Gate(web);
    await web.startRun("up-1", up, { stack: "dev" });
    const busy = await web.agent.start({ runId: "up-2", stack: "prod", operation: up });
    expect(busy).toMatchObject({ ok: false, error: { code: "busy", activeRun: "up-1" } });
    await gate.open("dev");
    expect(await web.result("up-1")).toMatchObject({ outcome: "succeeded", stack: "dev" });
    await web.startRun("up-2", up, { stack: "prod" });
    await gate.open("prod");
    expect(await web.result("up-2")).toMatchObject({ outcome: "succeeded", stack: "prod" });
    expect(await web.outputs("up-1")).toMatchObject([{ name: "word", value: "dev" }]);
    expect(await web.outputs("up-2")).toMatchObject([{ name: "word", value: "prod" }]);
  });

  test("keeps the lock of an interrupted run until the next run of the same stack", async () => {
    const web = await new TestWorkspace().start();
    await web.tryPrepareStacks(gatedProgram, [{ name: "dev" }, { name: "prod" }]);
    const gate = new Gate(web);
    await web.startRun("up-1", up, { stack: "dev" });
    await waitFor(() => locks(web, "dev").length > 0, { timeoutMs: 120_000, what: "the lock of the run" });
    await untilStateIsWritten(web);
    await web.kill("SIGKILL");
    killAllIn(web.share);
    await web.start();
    expect(await web.result("up-1")).toMatchObject({ outcome: "interrupted", stack: "dev" });
    await web.startRun("up-2", up, { stack: "prod" });
    await gate.open("prod");
    expect(await web.result("up-2")).toMatchObject({ outcome: "succeeded", stack: "prod" });
    expect(locks(web, "dev")).toHaveLength(1);
    await web.startRun("up-3", up, { stack: "dev" });
    await gate.open("dev");
    expect(await web.result("up-3")).toMatchObject({ outcome: "succeeded", stack: "dev" });
    expect(locks(web, "dev")).toEqual([]);
  });
});

/** A DIY backend has a single organization: these are the same stack for the backend, but two for the agent. */
describe("stacks with equal short names", () => {
  const short = { name: "repo", config: [value("only", "short"), value("token", "canary-short", { secret: true })] };
  const long = { name: "organization/demo/repo", config: [value("other", "long")] };

  test("share only the settings of the repository", async () => {
    const web = await new TestWorkspace().start();
    for (const _ of [1, 2, 3]) await prepareStacks(web, [short, long]);
    const settings = settingsFiles(web);
    expect(settings).toHaveLength(2);
    for (const text of settings) expect(text).toContain("demo:name: of the repository");
    expect(settings.filter((text) => text.includes("demo:only"))).toHaveLength(1);
    expect(settings.filter((text) => text.includes("secure:"))).toHaveLength(1);
    const longSettings = settings.filter((text) => text.includes("demo:other"));
    expect(longSettings).toHaveLength(1);
    expect(longSettings.join("")).not.toContain("demo:only");
    // A shell has the settings of the selected stack, which is the first.
    expect(readFileSync(join(web.share, "workspace/Pulumi.repo.yaml"), "utf8")).toContain("demo:only");
  });

  test("keep nothing of a stack that they replace", async () => {
    const web = await new TestWorkspace().start();
    await prepareStacks(web, [short]);
    await prepareStacks(web, [{ ...long, config: [] }]);
    const published = readFileSync(join(web.share, "workspace/Pulumi.repo.yaml"), "utf8");
    expect(published).toContain("demo:name: of the repository");
    expect(published).not.toContain("only");
    expect(published).not.toContain("secure:");
  });
});

/** The part of the agent's state that had another format for a single stack. */
interface StacksState {
  readonly ready: { readonly root: string; readonly stacks: readonly { name: string; settings: string }[] };
  readonly selected: readonly { stack: string; key: string }[];
}

describe("a workspace whose list changes", () => {
  test("from one stack to none keeps nothing of that stack's configuration", async () => {
    const web = await new TestWorkspace().start();
    await prepareStacks(web, [{ name: "dev", config: [value("name", "development")] }]);
    await web.run("up-1", up, { stack: "dev" });
    expect(await readOutputs(web, "up-1")).toMatchObject({ name: "development" });
    await prepareStacks(web, []);
    await web.run("up-2", up, { stack: "dev" });
    expect(await readOutputs(web, "up-2")).toMatchObject({ name: "unnamed" });
  });

  test("continues with the state of an agent for a single stack, then with two stacks", async () => {
    const web = await new TestWorkspace().start();
    await prepareStacks(web, [{ name: "dev", config: [value("name", "development")] }]);
    await web.kill("SIGTERM");
    const file = join(web.share, "agent/state.json");
    const { ready, selected, ...rest } = JSON.parse(readFileSync(file, "utf8")) as StacksState;
    const { stacks, root: _, ...common } = ready;
    const { name: stack, settings } = stacks[0] ?? {};
    const { key } = selected[0] ?? {};
    writeFileSync(file, JSON.stringify({ ...rest, selected: { key }, ready: { ...common, stack, settings } }));
    await web.start();
    expect(await web.run("up-1", up, { stack: "dev" })).toMatchObject({ outcome: "succeeded" });
    expect(await readOutputs(web, "up-1")).toMatchObject({ name: "development" });
    const selections = (): number => web.cliCalls().filter((call) => call.includes("stack select")).length;
    const before = selections();
    await prepareStacks(web, [{ name: "dev", config: [value("name", "development")] }, { name: "prod" }]);
    expect(selections()).toBe(before + 1);
    expect(await web.run("up-2", up, { stack: "prod" })).toMatchObject({ outcome: "succeeded" });
  });
});
