/** Runs that exceed their timeouts: each ends, leaves no process and no lock, and the next run succeeds. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PendingOperation, RunResult } from "@pko/rpc";
import { waitFor } from "@pko/testkit";
import { Gate, gatedProgram } from "./gate.ts";
import { program, pulumi, stash, TestWorkspace, toolFolders } from "./harness.ts";

setDefaultTimeout(300_000);

const working = program({ resources: { first: stash("quick") } });

/** A workspace whose program waits at a gate that nobody opens. */
async function hungWorkspace(options: ConstructorParameters<typeof TestWorkspace>[0] = {}): Promise<TestWorkspace> {
  const web = await new TestWorkspace(options).start();
  await web.prepare(gatedProgram);
  void new Gate(web);
  return web;
}

/** A timeout after which a CLI holds its lock, also on a busy machine. */
const lockedSeconds = 20;

/** A CLI that ignores SIGINT, and a short grace period. */
const stubborn = { beforeCli: "trap '' INT", flags: ["--grace-seconds", "2"] };

function locks(web: TestWorkspace): string[] {
  const folder = join(web.backend, ".pulumi/locks/organization/demo/dev");
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
}

/** The processes in the workspace's folders: the CLI and its plugins, but not the agent. */
function processes(web: TestWorkspace): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`).startsWith(web.share);
    } catch {
      return false;
    }
  });
}

async function expectCleanEnd(web: TestWorkspace): Promise<void> {
  await waitFor(() => processes(web).length === 0, { what: "the end of the processes of the run" });
  expect(locks(web)).toEqual([]);
  await web.prepare(working);
  expect(await web.run("up-2", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
}

const timedOut = { outcome: "failed", error: { class: "timedOut" } } as const;

describe("a hung run", () => {
  test("that is silent is stopped after the silence timeout", async () => {
    const web = await hungWorkspace();
    const result = await web.run("up-1", { kind: "up" }, { timeouts: { totalSeconds: 3600, silenceSeconds: 4 } });
    expect(result).toMatchObject(timedOut);
    expect(result.error?.message).toBe("the run was stopped after 4 s without output");
    await expectCleanEnd(web);
  });

  test("that prints endlessly is stopped after the total timeout", async () => {
    // Prints for as long as the CLI runs, into the same file.
    const print = 'case "$*" in *" up "*) sh -c "while sleep 0.05; do echo more; done" & esac';
    const web = await hungWorkspace({ beforeCli: print });
    const result = await web.run("up-1", { kind: "up" }, { timeouts: { totalSeconds: 12, silenceSeconds: 8 } });
    expect(result).toMatchObject(timedOut);
    expect(result.error?.message).toBe("the run was stopped because it exceeded its timeout of 12 s");
    expect(result.output.tail).toContain("more");
    writeFileSync(join(web.root, "pulumi"), `#!/bin/sh\nexec '${pulumi}' "$@"\n`);
    await expectCleanEnd(web);
  });

  test("that ignores SIGINT is killed after the grace period, and its lock is removed immediately", async () => {
    const web = await hungWorkspace(stubborn);
    await web.startRun("up-1", { kind: "up" }, { timeouts: { totalSeconds: lockedSeconds } });
    await waitFor(() => locks(web).length > 0, { timeoutMs: 120_000, what: "the lock of the run" });
    const updates = await web.updates("up-1");
    expect(JSON.stringify(updates)).toContain("removed the lock that an interrupted run left behind");
    expect(updates.at(-1)).toMatchObject({ type: "result", result: timedOut });
    const { error } = await web.result("up-1");
    expect(error?.message).toBe(
      `the run was cancelled because it exceeded its timeout of ${lockedSeconds} s, did not stop within the grace period of 2 s, and was killed`,
    );
    await expectCleanEnd(web);
  });

  test("whose lock was removed by a user is killed, and the lock of the user stays", async () => {
    const web = await hungWorkspace(stubborn);
    await web.startRun("up-1", { kind: "up" }, { timeouts: { totalSeconds: lockedSeconds } });
    await waitFor(() => locks(web).length > 0, { timeoutMs: 120_000, what: "the lock of the run" });
    const [own = ""] = locks(web);
    const lock = { username: "someone", hostname: "laptop", pid: 7, timestamp: new Date().toISOString() };
    writeFileSync(join(web.backend, ".pulumi/locks/organization/demo/dev", own), JSON.stringify(lock));
    expect(await web.result("up-1")).toMatchObject(timedOut);
    expect(locks(web)).toEqual([own]);
    expect(web.cliCalls().some((call) => call.includes(" cancel "))).toBe(false);
  });

  test("is stopped by the next agent process, if it exceeds its timeout while no agent is running", async () => {
    const web = await hungWorkspace();
    const startedAt = Date.now();
    await web.startRun("up-1", { kind: "up" }, { timeouts: { totalSeconds: lockedSeconds } });
    await waitFor(() => locks(web).length > 0, { timeoutMs: 120_000, what: "the lock of the run" });
    await web.kill("SIGKILL");
    await waitFor(() => Date.now() - startedAt > lockedSeconds * 1000, { what: "the timeout" });
    expect(processes(web)).not.toEqual([]);
    await web.start();
    expect(await web.result("up-1")).toMatchObject(timedOut);
    await expectCleanEnd(web);
  });
});

test("a run that ends within its timeouts succeeds", async () => {
  const web = await new TestWorkspace().start();
  await web.prepare(working);
  const timeouts = { totalSeconds: 3600, silenceSeconds: 3600 };
  expect(await web.run("up-1", { kind: "up" }, { timeouts })).toMatchObject({ outcome: "succeeded" });
});

describe("interrupted operations", () => {
  const urn = "urn:pulumi:dev::demo::pulumi:index:Stash::second";
  const creating = { urn, operation: "creating" };

  /** As after a kill during the creation of a resource. */
  function interrupt(web: TestWorkspace): void {
    const env = {
      PATH: `${toolFolders.join(":")}:${process.env["PATH"] ?? ""}`,
      HOME: join(web.root, "home"),
      PULUMI_BACKEND_URL: `file://${web.backend}`,
      PULUMI_CONFIG_PASSPHRASE: "canary-passphrase",
    };
    const cwd = join(web.share, "workspace");
    const exported = execFileSync(pulumi, ["stack", "export", "--stack=dev"], { cwd, env, encoding: "utf8" });
    const state = JSON.parse(exported) as { deployment: { pending_operations?: object[] } };
    const resource = { urn, type: "pulumi:index:Stash", custom: true, inputs: { input: "x" } };
    state.deployment.pending_operations = [{ type: "creating", resource }];
    const file = join(web.root, "state.json");
    writeFileSync(file, JSON.stringify(state));
    // The CLI removes pending operations from what it imports, so the state file is written directly.
    const path = join(web.backend, ".pulumi/stacks/demo/dev.json");
    const checkpoint = JSON.parse(readFileSync(path, "utf8")) as { checkpoint: { latest: object } };
    checkpoint.checkpoint.latest = state.deployment;
    writeFileSync(path, JSON.stringify(checkpoint));
  }

  async function interrupted(): Promise<TestWorkspace> {
    const web = await new TestWorkspace().start();
    await web.prepare(working);
    expect((await web.run("up-1", { kind: "up" })).pendingOperations).toBeUndefined();
    interrupt(web);
    return web;
  }

  const pendingIn = ({ pendingOperations }: RunResult): PendingOperation[] | undefined => pendingOperations;

  test("are reported by runs that succeed and by runs that fail, until they are cleared", async () => {
    const web = await interrupted();
    const warned = await web.run("up-2", { kind: "up" });
    expect(warned).toMatchObject({ outcome: "succeeded", pendingOperations: [creating] });
    // The CLI does not warn if it refreshes.
    expect(pendingIn(await web.run("up-3", { kind: "up", refresh: true }))).toEqual([creating]);
    await web.prepare(program({ outputs: { a: "${nope.x}" } }));
    const failed = await web.run("up-4", { kind: "up" });
    expect(failed).toMatchObject({
      outcome: "failed",
      error: { class: "programError" },
      pendingOperations: [creating],
    });

    await web.prepare(working);
    expect(pendingIn(await web.run("refresh-1", { kind: "refresh" }))).toEqual([creating]);
    const cleared = await web.run("refresh-2", { kind: "refresh", clearPendingCreates: true });
    expect(cleared.outcome).toBe("succeeded");
    expect(cleared.pendingOperations).toBeUndefined();
    expect(pendingIn(await web.run("up-5", { kind: "up" }))).toBeUndefined();
    expect(web.cliCalls().filter((call) => call.includes(" export ")).length).toBe(5);
    expect(existsSync(join(web.share, "runs/up-4/state.json"))).toBe(false);
  });
});
