/** Runs that are slow, cancelled, interrupted or orphaned: what survives, what is reported, which locks are removed. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { RunResult } from "@pko/rpc";
import { waitFor } from "@pko/testkit";
import { Gate, gatedProgram, untilStateIsWritten } from "./gate.ts";
import { program, stash, TestWorkspace } from "./harness.ts";
import { cliPid, killAll, lockFolder, lockHolder, locks, sessionMembers, writeLock } from "./locks.ts";

setDefaultTimeout(300_000);

const isQuickDone = (update: { type: string; event?: unknown }): boolean =>
  update.type === "event" &&
  JSON.stringify(update.event).includes('"finished"') &&
  JSON.stringify(update.event).includes("::first");

/** Starts an update that waits at the gate. */
async function startGatedUpdate(options: ConstructorParameters<typeof TestWorkspace>[0] = {}) {
  const web = await new TestWorkspace(options).start();
  await web.prepare(gatedProgram);
  const gate = new Gate(web);
  await web.startRun("up-1", { kind: "up" });
  return { web, gate };
}

async function waitForLock(web: TestWorkspace): Promise<void> {
  await waitFor(() => locks(web).length > 0, { timeoutMs: 120_000, what: "the lock of the run" });
}

/** Waits until the CLI's session has no more processes. */
async function waitForEnd(pid: number): Promise<void> {
  await waitFor(() => sessionMembers(pid).length === 0, { what: "the end of the CLI's processes" });
}

describe("a slow run", () => {
  test("excludes other runs and preparations", async () => {
    const { web, gate } = await startGatedUpdate();
    const other = await web.agent.start({ runId: "up-2", operation: { kind: "up" } });
    expect(!other.ok && other.error).toMatchObject({ code: "busy", activeRun: "up-1" });
    const prepare = await web.agent.prepare({
      source: gatedProgram,
      stacks: [{ name: "dev", create: true, config: [], environments: [] }],
    });
    expect(!prepare.ok && prepare.error).toMatchObject({ code: "busy", activeRun: "up-1" });
    const again = await web.agent.start({ runId: "up-1", operation: { kind: "up" } });
    expect(again.ok && again.value.state).toBe("running");
    const early = await web.agent.outputs({ runId: "up-1" });
    expect(early.ok || early.error.code).toBe("unprepared");
    await gate.open("open");
    expect(await web.result("up-1")).toMatchObject({ outcome: "succeeded", progress: { created: 3 } });
    expect(await web.outputs("up-1")).toMatchObject([{ name: "word", value: "open" }]);
  });

  test("is started once even if it is requested many times in parallel", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(gatedProgram);
    const gate = new Gate(web);
    const start = () => web.agent.start({ runId: "up-1", operation: { kind: "up" } });
    const replies = await Promise.all(Array.from({ length: 10 }, start));
    const states = replies.map((reply) => (reply.ok ? reply.value.state : reply.error.code)).toSorted();
    expect(states.join(" ")).toBe(`${"running ".repeat(9)}started`);
    await gate.open("once");
    expect(await web.result("up-1")).toMatchObject({ outcome: "succeeded" });
    expect(web.cliCalls().filter((call) => call.includes(" up "))).toHaveLength(1);
  });

  test("can have several readers, from different positions, while it runs", async () => {
    const { web, gate } = await startGatedUpdate();
    const readers = [1, 1, 3].map((fromSeq) => web.updates("up-1", fromSeq));
    await gate.open("read");
    const [first, second, third] = await Promise.all(readers);
    const events = (updates: typeof first) => updates?.filter(({ type }) => type === "event");
    expect(events(first)).toEqual(events(second));
    expect(events(third)).toEqual(events(first)?.slice(2));
  });
});

describe("cancelling", () => {
  test("stops the CLI gracefully, and its lock is removed", async () => {
    const { web } = await startGatedUpdate();
    await web.until("up-1", isQuickDone);
    const pid = cliPid(web);
    expect(locks(web)).toHaveLength(1);
    expect(await web.agent.cancel({ runId: "up-1" })).toEqual({ ok: true, value: { state: "cancelling" } });
    const result = await web.result("up-1");
    expect(result).toMatchObject({ outcome: "cancelled", error: { class: "cancelled" } });
    expect(locks(web)).toEqual([]);
    await waitForEnd(pid);
    // The state is kept, and the next update continues from there.
    await web.prepare(program({ resources: { first: stash("quick") } }));
    expect(await web.run("up-2", { kind: "up" })).toMatchObject({ outcome: "succeeded", progress: { unchanged: 2 } });
  });

  test("kills the CLI and its plugins after the grace period, and the next run removes the lock", async () => {
    // A CLI that ignores SIGINT.
    const web = await new TestWorkspace({ beforeCli: "trap '' INT" }).start();
    await web.prepare(gatedProgram);
    const gate = new Gate(web);
    await web.startRun("up-1", { kind: "up" });
    await web.until("up-1", isQuickDone);
    await untilStateIsWritten(web);
    const pid = cliPid(web);
    expect(sessionMembers(pid).length).toBeGreaterThan(1);
    await web.agent.cancel({ runId: "up-1", graceSeconds: 1 });
    expect(await web.result("up-1")).toMatchObject({ outcome: "cancelled" });
    await waitForEnd(pid);
    // It may or may not have removed its lock: make sure that there is one.
    const timestamp = await lockHolder(web).then(({ lockedAt }) => lockedAt);
    if (locks(web).length === 0) writeLock(web, { pid, hostname: hostname(), timestamp });
    await web.startRun("up-2", { kind: "up" });
    await gate.open("after");
    expect(await web.result("up-2")).toMatchObject({ outcome: "succeeded" });
    expect(locks(web)).toEqual([]);
  });
});

describe("an agent that is killed", () => {
  test("leaves its run alive, and the next agent process follows it to its end", async () => {
    const { web, gate } = await startGatedUpdate();
    await web.until("up-1", isQuickDone);
    const pid = cliPid(web);
    await web.kill("SIGKILL");
    expect(sessionMembers(pid).length).toBeGreaterThan(0);
    await web.start();
    const state = await web.agent.start({ runId: "up-1", operation: { kind: "up" } });
    expect(state.ok && state.value.state).toBe("running");
    const following = web.updates("up-1");
    await gate.open("survived");
    const updates = await following;
    const seqs = updates.flatMap((update) => (update.type === "event" ? [update.seq] : []));
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    const finished = updates.flatMap((update) =>
      update.type === "event" && update.event.kind === "resource" && update.event.phase === "finished"
        ? [update.event.urn.split("::").at(-1)]
        : [],
    );
    // Each event once, before and after the kill.
    expect(finished).toEqual([...new Set(finished)]);
    expect(await web.result("up-1")).toMatchObject({ outcome: "succeeded", progress: { created: 3 } });
    expect(await web.outputs("up-1")).toMatchObject([{ name: "word", value: "survived" }]);
    expect(web.cliCalls().filter((call) => call.includes(" up "))).toHaveLength(1);
  });

  test("does not report output that it cannot mask, and names the file with it", async () => {
    const print = 'case "$*" in *" up "*) echo "connect with canary-config";; esac';
    const web = await new TestWorkspace({ beforeCli: print }).start();
    const item = { key: "token", secret: true, value: { from: "value" as const, value: "canary-config" } };
    await web.prepare(gatedProgram, { config: [item] });
    const gate = new Gate(web);
    await web.startRun("up-1", { kind: "up" });
    await web.until("up-1", isQuickDone);
    await web.logged(/connect with \[secret\]/);
    await web.kill("SIGKILL");
    await web.start();
    await gate.open("survived");
    const result = await web.result("up-1");
    expect(result).toMatchObject({ outcome: "succeeded", progress: { created: 3 }, output: { truncated: true } });
    expect(result.output.tail).toContain("the output is not shown, because the workspace's agent was restarted");
    const file = join(web.share, "runs/up-1/stdout-0.log");
    expect(readFileSync(file, "utf8")).toContain("canary-config");
    await web.logged(/"msg":"output is in a file in the pod".*\n/);
    const hint = web.log.split("\n").find((line) => line.includes('"msg":"output is in a file in the pod"'));
    expect(hint).toContain(`"run":"up-1","file":"${file}"`);
    expect(web.log).not.toContain("canary-config");

    // After a preparation it knows the secrets.
    await web.prepare(gatedProgram, { config: [item] });
    await web.startRun("up-2", { kind: "up" });
    await gate.open("masked");
    expect((await web.result("up-2")).output.tail).toContain("connect with [secret]");
  });

  test("reports the result of a run that ended while no agent was running", async () => {
    const { web, gate } = await startGatedUpdate();
    await web.until("up-1", isQuickDone);
    const pid = cliPid(web);
    await web.kill("SIGKILL");
    await gate.open("meanwhile");
    await waitForEnd(pid);
    await web.start();
    expect(await web.result("up-1")).toMatchObject({ outcome: "succeeded" });
  });

  test("together with its run reports the run as interrupted, and the next run removes its lock", async () => {
    const { web, gate } = await startGatedUpdate();
    await web.until("up-1", isQuickDone);
    await untilStateIsWritten(web);
    const pid = cliPid(web);
    await web.kill("SIGKILL");
    killAll(pid);
    expect(locks(web)).toHaveLength(1);
    await web.start();
    const result = await web.result("up-1");
    expect(result).toMatchObject({ outcome: "interrupted", error: { class: "interrupted" } });
    const again = await web.agent.start({ runId: "up-1", operation: { kind: "up" } });
    expect(again.ok && again.value.result?.outcome).toBe("interrupted");

    await web.startRun("up-2", { kind: "up" });
    await gate.open("second");
    const updates = await web.updates("up-2");
    expect(JSON.stringify(updates)).toContain("removed the lock that an interrupted run left behind");
    expect(updates.at(-1)).toMatchObject({ type: "result", result: { outcome: "succeeded" } });
    expect(locks(web)).toEqual([]);
  });

  test("with its pod leaves a lock, which only a later pod with a confirmed run removes", async () => {
    const { web } = await startGatedUpdate();
    const process = await lockHolder(web);
    await web.kill("SIGKILL");
    killAll(cliPid(web));
    // Another pod of the workspace: the same backend, but another volume.
    const next = await new TestWorkspace({ env: { PULUMI_BACKEND_URL: `file://${web.backend}` } }).start();
    await next.prepare(program({ resources: { a: stash("x") } }));
    const unconfirmed = { from: process.startedAt, to: new Date().toISOString() };
    expect(await next.run("up-2", { kind: "up" }, { lostRuns: [unconfirmed] })).toMatchObject({
      error: { class: "conflict" },
    });
    expect(locks(web)).toHaveLength(1);

    const { hostname: host, pid, startedAt, lockedAt } = process;
    const lost = { from: startedAt, to: lockedAt, hostname: host, pid, startedAt };
    expect(await next.run("up-3", { kind: "up" }, { lostRuns: [lost] })).toMatchObject({ outcome: "succeeded" });
    expect(locks(web)).toEqual([]);
  });
});

describe("two clusters with equal names that share a backend", () => {
  /** Two agents with the same host name and the same backend. */
  async function clusters() {
    const { web: first, gate } = await startGatedUpdate();
    const second = await new TestWorkspace({ env: { PULUMI_BACKEND_URL: `file://${first.backend}` } }).start();
    await second.prepare(program({ resources: { a: stash("x") } }));
    return { first, second, gate };
  }

  test("do not break each other's live locks, even after a restart of the agent", async () => {
    const { first, second, gate } = await clusters();
    await lockHolder(first);
    const [held] = locks(first);
    const blocked = await second.run("up-2", { kind: "up" });
    expect(blocked).toMatchObject({ outcome: "failed", error: { class: "conflict" } });
    expect(blocked.error?.message).toContain(`@${hostname()} (pid ${cliPid(first)}) since `);
    expect(blocked.error?.message).toContain("`pulumi cancel --yes --stack dev` in the workspace's pod");
    // After a restart of the agent, its own records do not prove anything about this lock.
    await second.kill("SIGKILL");
    await second.start();
    expect(await second.run("up-3", { kind: "up" })).toMatchObject({ error: { class: "conflict" } });
    expect(locks(first)).toEqual([held ?? ""]);
    expect(second.cliCalls().some((call) => call.includes(" cancel "))).toBe(false);
    await gate.open("first");
    expect(await first.result("up-1")).toMatchObject({ outcome: "succeeded" });
    expect(await second.run("up-4", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
  });

  test("do not break a lock with the PID of a dead run that was acquired at another time", async () => {
    const { first, second } = await clusters();
    await lockHolder(first);
    const pid = cliPid(first);
    await first.kill("SIGKILL");
    killAll(pid);
    // A user cancels, and the other cluster's process gets the same PID.
    for (const name of locks(first)) rmSync(join(lockFolder(first), name));
    writeLock(first, { pid, hostname: hostname(), timestamp: new Date(Date.now() + 5_000).toISOString() });
    expect(await second.run("up-2", { kind: "up" })).toMatchObject({ error: { class: "conflict" } });
    await first.start();
    expect(await first.result("up-1")).toMatchObject({ outcome: "interrupted" });
    expect(await first.run("up-2", { kind: "up" })).toMatchObject({ error: { class: "conflict" } });
    expect(locks(first)).toHaveLength(1);
  });

  test("break the lock of their own confirmed dead run, and the next update succeeds", async () => {
    const { first, second } = await clusters();
    await lockHolder(first);
    await first.kill("SIGKILL");
    killAll(cliPid(first));
    expect(await second.run("up-2", { kind: "up" })).toMatchObject({ error: { class: "conflict" } });
    await first.start();
    expect(await first.result("up-1")).toMatchObject({ outcome: "interrupted" });
    await first.prepare(program({ resources: { a: stash("x") } }));
    expect(await first.run("up-2", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    expect(await second.run("up-3", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
  });
});

describe("foreign locks", () => {
  test("are conflicts and stay", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({ resources: { a: stash("x") } }));
    writeLock(web, { pid: 7, hostname: "laptop", timestamp: "2020-01-01T00:00:00Z" });
    const result = await web.run("up-1", { kind: "up" });
    expect(result).toMatchObject({ outcome: "failed", error: { class: "conflict" } });
    expect(result.error?.lines.join("\n")).toContain("someone@laptop");
    expect(locks(web)).toHaveLength(1);
    expect(web.cliCalls().some((call) => call.includes("cancel"))).toBe(false);
  });

  test("are left alone even if there is one of our own, too", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({ resources: { a: stash("x") } }));
    writeLock(web, { pid: 7, hostname: "laptop", timestamp: "2020-01-01T00:00:00Z" });
    writeLock(web, { pid: 4_000_000, hostname: hostname(), timestamp: "2020-01-01T00:00:00Z" });
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({ error: { class: "conflict" } });
    expect(locks(web)).toHaveLength(2);
  });

  test("of a live process in this pod are left alone", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({ resources: { a: stash("x") } }));
    // The test's own process stands for a user's shell in the pod.
    writeLock(web, { pid: process.pid, hostname: hostname(), timestamp: new Date().toISOString() });
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({ error: { class: "conflict" } });
    expect(locks(web)).toHaveLength(1);
  });
});

describe("a workspace that stops", () => {
  test("interrupts its run, reports the result, and leaves no lock", async () => {
    const { web } = await startGatedUpdate();
    await web.until("up-1", isQuickDone);
    const result: Promise<RunResult> = web.result("up-1");
    const stopped = web.kill("SIGTERM");
    expect(await result).toMatchObject({ outcome: "interrupted", error: { class: "interrupted" } });
    await stopped;
    expect(locks(web)).toEqual([]);
    await web.logged(/agent stopped/);
    await web.start();
    expect(await web.result("up-1")).toMatchObject({ outcome: "interrupted" });
  });
});

describe("a CLI that is killed from outside", () => {
  test("is reported as an interrupted run", async () => {
    const { web } = await startGatedUpdate();
    await waitForLock(web);
    process.kill(cliPid(web), "SIGKILL");
    const result = await web.result("up-1");
    expect(result).toMatchObject({ outcome: "interrupted", error: { class: "interrupted" } });
    expect(result.error?.message).toContain("SIGKILL");
    await waitForEnd(cliPid(web));
  });
});
