/** Workspaces that list no stack, one, or several: what each run works on, and what stays apart. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigItem, StackSettings } from "@pko/rpc";
import { waitFor } from "@pko/testkit";
import { Gate, gatedProgram } from "./gate.ts";
import { program, pulumi, stash, TestWorkspace, toolFolders } from "./harness.ts";

setDefaultTimeout(180_000);

const value = (key: string, it: unknown, more: Partial<ConfigItem> = {}): ConfigItem => ({
  key,
  value: { from: "value", value: it },
  ...more,
});

/** Its outputs are its configuration. */
const echo = program(
  {
    config: { name: { type: "string", default: "nobody" }, token: { type: "string", default: "none" } },
    resources: { a: stash("x") },
    outputs: { name: "${name}", token: "${token}", stack: "${pulumi.stack}" },
  },
  { "Pulumi.repo.yaml": "config:\n  demo:name: of the repository\n" },
);

async function preparedFor(web: TestWorkspace, stacks: readonly Partial<StackSettings>[]): Promise<void> {
  const prepared = await web.tryPrepareStacks(echo, stacks);
  if ("reason" in prepared) throw new Error(`${prepared.reason}: ${prepared.message}`);
}

async function outputsOf(web: TestWorkspace, runId: string): Promise<Record<string, unknown>> {
  return Object.fromEntries((await web.outputs(runId)).map(({ name, value: it }) => [name, it]));
}

const up = { kind: "up" } as const;
const stateOf = (web: TestWorkspace, stack: string): string =>
  join(web.backend, ".pulumi/stacks/demo", `${stack}.json`);
const hasStack = (web: TestWorkspace, stack: string): boolean => existsSync(stateOf(web, stack));

function settingsFiles(web: TestWorkspace): string[] {
  const folder = join(web.share, "agent/stacks");
  return readdirSync(folder).map((name) => readFileSync(join(folder, name, "settings.yaml"), "utf8"));
}

function locksOf(web: TestWorkspace, stack: string): string[] {
  const folder = join(web.backend, ".pulumi/locks/organization/demo", stack);
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
}

/** As a user does it, beside the agent. */
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
  test("is prepared without one, and runs work on the stack that they name", async () => {
    const web = await new TestWorkspace().start();
    await preparedFor(web, []);
    expect(web.cliCalls().filter((call) => call.includes("stack"))).toEqual([]);
    createStack(web, "byhand");
    createStack(web, "repo");
    expect(await web.run("up-1", up, { stack: "byhand" })).toMatchObject({ outcome: "succeeded", stack: "byhand" });
    expect(await outputsOf(web, "up-1")).toEqual({ name: "nobody", token: "none", stack: "byhand" });

    await web.kill("SIGKILL");
    await web.start();
    expect(await web.run("up-2", up, { stack: "repo" })).toMatchObject({ outcome: "succeeded", stack: "repo" });
    expect(await outputsOf(web, "up-2")).toMatchObject({ name: "of the repository", stack: "repo" });
    expect(await web.run("up-3", { ...up, expectNoChanges: true }, { stack: "byhand" })).toMatchObject({
      outcome: "succeeded",
    });
  });

  test("never creates a stack, and says how to have it created", async () => {
    const web = await new TestWorkspace().start();
    await preparedFor(web, []);
    const result = await web.run("up-1", up, { stack: "dve" });
    expect(result).toMatchObject({ outcome: "failed", stack: "dve", error: { class: "stackNotFound" } });
    expect(result.error?.message).toBe(
      "the stack does not exist, and it is created only if the Workspace lists it with create; " +
        "add it to spec.stacks of the Workspace with create: true, or create it with `pulumi stack init`",
    );
    expect(hasStack(web, "dve")).toBe(false);
    // It is still prepared.
    createStack(web, "dve");
    expect(await web.run("up-2", up, { stack: "dve" })).toMatchObject({ outcome: "succeeded" });
  });

  test("refuses what is not the name of a stack, for good", async () => {
    const web = await new TestWorkspace().start();
    await preparedFor(web, []);
    const refused = await web.agent.start({ runId: "up-1", stack: "../dev", operation: up });
    expect(refused).toMatchObject({ ok: false, error: { code: "invalidRequest" } });
    expect(readdirSync(join(web.share, "runs"))).toEqual([]);
  });

  test("is prepared again once a run has removed a stack, with the settings that the source has for it", async () => {
    const web = await new TestWorkspace().start();
    await preparedFor(web, []);
    createStack(web, "repo");
    await web.run("up-1", up, { stack: "repo" });
    expect(await web.run("destroy-1", { kind: "destroy", remove: true }, { stack: "repo" })).toMatchObject({
      outcome: "succeeded",
    });
    expect(hasStack(web, "repo")).toBe(false);
    const unprepared = await web.agent.start({ runId: "up-2", stack: "repo", operation: up });
    expect(unprepared).toMatchObject({ ok: false, error: { code: "unprepared" } });
    await preparedFor(web, []);
    expect(hasStack(web, "repo")).toBe(false);
    createStack(web, "repo");
    await web.run("up-3", up, { stack: "repo" });
    expect(await outputsOf(web, "up-3")).toMatchObject({ name: "of the repository" });
  });
});

describe("a workspace that lists two stacks", () => {
  const dev = {
    name: "dev",
    config: [value("name", "development"), value("token", "canary-dev", { secret: true })],
  };
  const prod = { name: "prod", config: [value("name", "production")] };

  test("gives each its own configuration and secrets, and to no other", async () => {
    const web = await new TestWorkspace().start();
    await preparedFor(web, [dev, prod]);
    expect(hasStack(web, "dev") && hasStack(web, "prod")).toBe(true);
    expect(await web.run("up-1", up, { stack: "prod" })).toMatchObject({ outcome: "succeeded", stack: "prod" });
    expect(await web.run("up-2", up, { stack: "dev" })).toMatchObject({ outcome: "succeeded", stack: "dev" });
    expect(await outputsOf(web, "up-1")).toEqual({ name: "production", token: "none", stack: "prod" });
    expect(await outputsOf(web, "up-2")).toEqual({ name: "development", token: "canary-dev", stack: "dev" });
    expect((await web.outputs("up-2")).find(({ name }) => name === "token")).toMatchObject({ secret: true });
    expect((await web.outputs("up-1")).find(({ name }) => name === "token")).toMatchObject({ secret: false });
    expect(web.log).not.toContain("canary");
    // What is encrypted for one stack is not in the settings of the other.
    const settings = settingsFiles(web);
    expect(settings.filter((text) => text.includes("secure:"))).toHaveLength(1);
    expect(settings.filter((text) => text.includes("production"))).toHaveLength(1);
  });

  test("does nothing twice, also after a restart of the agent, and runs go on", async () => {
    const web = await new TestWorkspace().start();
    await preparedFor(web, [dev, prod]);
    await web.kill("SIGKILL");
    await web.start();
    expect(await web.run("up-1", up, { stack: "prod" })).toMatchObject({ outcome: "succeeded" });
    const before = web.cliCalls().filter((call) => call.includes("stack select")).length;
    expect(before).toBe(2);
    const again = await web.tryPrepareStacks(echo, [dev, prod]);
    expect(again).toMatchObject({ changed: { source: false, stack: false } });
    expect(web.cliCalls().filter((call) => call.includes("stack select"))).toHaveLength(before);
    expect(await web.run("up-2", up, { stack: "dev" })).toMatchObject({ outcome: "succeeded" });
    expect(await outputsOf(web, "up-2")).toMatchObject({ name: "development", token: "canary-dev" });
  });

  test("runs no other stack, and none at all unless it is named", async () => {
    const web = await new TestWorkspace().start();
    await preparedFor(web, [dev, prod]);
    createStack(web, "other");
    const unlisted = await web.agent.start({ runId: "up-1", stack: "other", operation: up });
    expect(unlisted).toMatchObject({
      ok: false,
      error: { code: "unprepared", message: "the workspace is prepared for dev, prod, not for other" },
    });
    // As operators of version 1 do.
    const unnamed = await web.agent.start({ runId: "up-2", operation: up });
    expect(unnamed).toMatchObject({ ok: false, error: { code: "unprepared" } });
  });

  test("says which of them cannot be prepared", async () => {
    const web = await new TestWorkspace().start();
    const missing = { name: "missing", create: false };
    const notFound = await web.tryPrepareStacks(echo, [dev, missing]);
    expect(notFound).toMatchObject({ phase: "stack", reason: "stackNotFound" });
    expect("message" in notFound && notFound.message).toContain("the stack missing cannot be selected");
    const broken = { ...prod, config: [{ key: "name", value: { from: "env", name: "NOPE" } } as const] };
    const unset = await web.tryPrepareStacks(echo, [dev, broken]);
    expect(unset).toMatchObject({ phase: "config", reason: "configInvalid" });
    expect("message" in unset && unset.message).toContain(
      "the stack prod cannot be configured: the configuration name: the environment variable NOPE is not set",
    );
    await preparedFor(web, [dev, prod]);
    expect(await web.run("up-1", up, { stack: "prod" })).toMatchObject({ outcome: "succeeded" });
  });

  test("keeps the other when a run removes one; that one is created again by the next preparation", async () => {
    const web = await new TestWorkspace().start();
    await preparedFor(web, [dev, prod]);
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
    await preparedFor(web, [dev, prod]);
    expect(await web.run("up-5", up, { stack: "dev" })).toMatchObject({ outcome: "succeeded", changes: { create: 2 } });
  });

  test("gives each its own secrets provider and environments, and says which a warning is about", async () => {
    const web = await new TestWorkspace().start();
    const plain = { name: "plain", secretsProvider: "default" };
    await preparedFor(web, [{ name: "dev", secretsProvider: "passphrase", environments: ["base"] }, plain]);
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

  test("runs one at a time, whichever stack they work on", async () => {
    const web = await new TestWorkspace().start();
    await web.tryPrepareStacks(gatedProgram, [{ name: "dev" }, { name: "prod" }]);
    const gate = new Gate(web);
    await web.begin("up-1", up, { stack: "dev" });
    const busy = await web.agent.start({ runId: "up-2", stack: "prod", operation: up });
    expect(busy).toMatchObject({ ok: false, error: { code: "busy", activeRun: "up-1" } });
    await gate.open("dev");
    expect(await web.result("up-1")).toMatchObject({ outcome: "succeeded", stack: "dev" });
    await web.begin("up-2", up, { stack: "prod" });
    await gate.open("prod");
    expect(await web.result("up-2")).toMatchObject({ outcome: "succeeded", stack: "prod" });
    expect(await web.outputs("up-1")).toMatchObject([{ name: "word", value: "dev" }]);
    expect(await web.outputs("up-2")).toMatchObject([{ name: "word", value: "prod" }]);
  });

  test("leaves the lock of an interrupted run in place until its own stack's next run", async () => {
    const web = await new TestWorkspace().start();
    await web.tryPrepareStacks(gatedProgram, [{ name: "dev" }, { name: "prod" }]);
    const gate = new Gate(web);
    await web.begin("up-1", up, { stack: "dev" });
    await waitFor(() => locksOf(web, "dev").length > 0, { timeoutMs: 30_000, what: "the lock of the run" });
    const record = readFileSync(join(web.share, "runs/up-1/run.json"), "utf8");
    await web.kill("SIGKILL");
    process.kill(-Number(/"pid":(\d+)/.exec(record)?.[1]), "SIGKILL");
    await web.start();
    expect(await web.result("up-1")).toMatchObject({ outcome: "interrupted", stack: "dev" });
    await web.begin("up-2", up, { stack: "prod" });
    await gate.open("prod");
    expect(await web.result("up-2")).toMatchObject({ outcome: "succeeded", stack: "prod" });
    expect(locksOf(web, "dev")).toHaveLength(1);
    await web.begin("up-3", up, { stack: "dev" });
    await gate.open("dev");
    expect(await web.result("up-3")).toMatchObject({ outcome: "succeeded", stack: "dev" });
    expect(locksOf(web, "dev")).toEqual([]);
  });
});

/** A bucket or a file system has a single organization: both are the same stack for it, and two for the agent. */
describe("stacks with equal short names", () => {
  const short = { name: "repo", config: [value("only", "short"), value("token", "canary-short", { secret: true })] };
  const long = { name: "organization/demo/repo", config: [value("other", "long")] };

  test("share the settings of the repository, and nothing of each other's", async () => {
    const web = await new TestWorkspace().start();
    for (const _ of [1, 2, 3]) await preparedFor(web, [short, long]);
    const settings = settingsFiles(web);
    expect(settings).toHaveLength(2);
    for (const text of settings) expect(text).toContain("demo:name: of the repository");
    expect(settings.filter((text) => text.includes("demo:only"))).toHaveLength(1);
    expect(settings.filter((text) => text.includes("secure:"))).toHaveLength(1);
    const ofLong = settings.filter((text) => text.includes("demo:other"));
    expect(ofLong).toHaveLength(1);
    expect(ofLong.join("")).not.toContain("demo:only");
    // A shell finds the settings of the stack that is selected there, which is the first.
    expect(readFileSync(join(web.share, "workspace/Pulumi.repo.yaml"), "utf8")).toContain("demo:only");
  });

  test("one that takes the place of the other keeps nothing of it", async () => {
    const web = await new TestWorkspace().start();
    await preparedFor(web, [short]);
    await preparedFor(web, [{ ...long, config: [] }]);
    const published = readFileSync(join(web.share, "workspace/Pulumi.repo.yaml"), "utf8");
    expect(published).toContain("demo:name: of the repository");
    expect(published).not.toContain("only");
    expect(published).not.toContain("secure:");
  });
});

/** The part of the agent's state that was different while there was a single stack. */
interface StateOfStacks {
  readonly ready: { readonly root: string; readonly stacks: readonly { name: string; settings: string }[] };
  readonly selected: readonly { stack: string; key: string }[];
}

describe("a workspace whose list changes", () => {
  test("from one stack to none keeps nothing of that stack's configuration", async () => {
    const web = await new TestWorkspace().start();
    await preparedFor(web, [{ name: "dev", config: [value("name", "development")] }]);
    await web.run("up-1", up, { stack: "dev" });
    expect(await outputsOf(web, "up-1")).toMatchObject({ name: "development" });
    await preparedFor(web, []);
    await web.run("up-2", up, { stack: "dev" });
    expect(await outputsOf(web, "up-2")).toMatchObject({ name: "nobody" });
  });

  test("that an agent for a single stack prepared goes on with that stack, and then with two", async () => {
    const web = await new TestWorkspace().start();
    await preparedFor(web, [{ name: "dev", config: [value("name", "development")] }]);
    await web.kill("SIGTERM");
    const file = join(web.share, "agent/state.json");
    const { ready, selected, ...rest } = JSON.parse(readFileSync(file, "utf8")) as StateOfStacks;
    const { stacks, root: _, ...common } = ready;
    const { name: stack, settings } = stacks[0] ?? {};
    const { key } = selected[0] ?? {};
    writeFileSync(file, JSON.stringify({ ...rest, selected: { key }, ready: { ...common, stack, settings } }));
    await web.start();
    expect(await web.run("up-1", up, { stack: "dev" })).toMatchObject({ outcome: "succeeded" });
    expect(await outputsOf(web, "up-1")).toMatchObject({ name: "development" });
    const selections = (): number => web.cliCalls().filter((call) => call.includes("stack select")).length;
    const before = selections();
    await preparedFor(web, [{ name: "dev", config: [value("name", "development")] }, { name: "prod" }]);
    expect(selections()).toBe(before + 1);
    expect(await web.run("up-2", up, { stack: "prod" })).toMatchObject({ outcome: "succeeded" });
  });
});
