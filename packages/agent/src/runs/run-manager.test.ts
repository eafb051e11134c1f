import { expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PulumiCli } from "../pulumi/cli.ts";
import { SignIn } from "../pulumi/cloud/sign-in.ts";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { RunFolder } from "./run-folder.ts";
import { RunManager } from "./run-manager.ts";

/** A dead process that held a lock: no process can have such a high PID. */
const holder = {
  hostname: "web-workspace-0",
  pid: 4_194_303,
  startedAt: "2026-01-01T12:00:00Z",
  lockedAt: "2026-01-01T12:00:02Z",
};
const lock = `file:///b/lock.json: created by me@${holder.hostname} (pid ${holder.pid}) at 2026-01-01T12:00:01Z`;

/** The stack is locked until `pulumi cancel`. */
const lockedStack = `case "$*" in
*cancel*) touch cancelled;;
*) [ -e cancelled ] || { echo 'error: the stack is currently locked by 1 lock(s)
  ${lock}' >&2; exit 255; };;
esac`;

const target = (root: string, stack: string, project: string) => ({
  revision: "r",
  stack,
  project: { name: project, runtime: "go" },
  projectFolder: root,
  settings: join(root, "settings.yaml"),
});

/** The CLI executes `command` for each operation, in `root`. */
function managerOf(
  command: string,
  onResult: (runs: RunManager, outcome: string) => Promise<void>,
  preparing: Promise<void> = Promise.resolve(),
) {
  const root = temporaryFolder();
  const redactor = new Redactor();
  const lines: string[] = [];
  const log = createLog(redactor, (line) => lines.push(line));
  const signIn = new SignIn({ oidc: undefined, redactor, log });
  const file = join(root, "pulumi");
  writeFileSync(file, `#!/bin/sh\ncd '${root}'\ncase "$*" in *version*) echo v3.200.0;; *) ${command};; esac\n`);
  chmodSync(file, 0o755);
  const cli = new PulumiCli({ file, state: join(root, "state"), inherited: {}, redactor, signIn });
  const runs: RunManager = new RunManager({
    runs: join(root, "runs"),
    cli,
    log,
    hostname: holder.hostname,
    namespace: undefined,
    graceSeconds: 1,
    agentVersion: "test",
    workspaceUid: undefined,
    targetFor: async () => {
      await preparing;
      return { kind: "found", target: target(root, "dev", "demo") };
    },
    knowsSecrets: () => true,
    onResult: async (_, { outcome }) => await onResult(runs, outcome),
  });
  return { root, lines, cli, runs };
}

const cases: readonly (readonly [string, string, string, boolean])[] = [
  ["the same stack", "dev", "demo", true],
  ["another stack", "prod", "demo", false],
  ["another project's stack of the same name", "dev", "other", false],
];
for (const [what, stack, project, isRemoved] of cases) {
  test(`the lock of a dead run of ${what} is ${isRemoved ? "removed" : "left alone"}`, async () => {
    const ended = Promise.withResolvers<string>();
    const { root, runs } = managerOf(lockedStack, async (_, outcome) => ended.resolve(outcome));
    const operation = { kind: "up" as const };
    const dead = { step: 0, pid: holder.pid, startTicks: "1", startedAt: holder.startedAt, holder };
    const { startedAt } = holder;
    const record = { runId: "dead", operation, ready: target(root, stack, project), startedAt, launches: [dead] };
    await new RunFolder(join(root, "runs"), "dead").create(record);
    await runs.start({ runId: "next", stack: "dev", operation });
    expect(await ended.promise).toBe(isRemoved ? "succeeded" : "failed");
    expect(existsSync(join(root, "cancelled"))).toBe(isRemoved);
  });
}

test("a cancellation after the end of a run changes neither its record nor its events", async () => {
  const ended = Promise.withResolvers<string>();
  const { root, lines, runs } = managerOf("true", async (manager, outcome) => {
    await manager.cancel({ runId: "late" });
    ended.resolve(outcome);
  });
  await runs.start({ runId: "late", stack: "dev", operation: { kind: "up" } });
  expect(await ended.promise).toBe("succeeded");
  await runs.stop();
  expect((await new RunFolder(join(root, "runs"), "late").readRecord())?.cancelled).toBeUndefined();
  expect(lines.join("\n")).not.toContain("notice");
});

const reports = {
  "the answer to a cancellation": (runs: RunManager) => runs.cancel({ runId: "late" }),
  "the answer to a watch": (runs: RunManager) =>
    runs.watch({ runId: "late", fromSeq: 1 }, new AbortController().signal),
};
for (const [what, report] of Object.entries(reports)) {
  test(`a run that does not exist according to ${what} is not started by a request that arrives later`, async () => {
    const { root, runs } = managerOf("touch started", async () => {});
    expect(await report(runs)).toMatchObject({ ok: false, error: { code: "notFound" } });
    const late = await runs.start({ runId: "late", stack: "dev", operation: { kind: "up" } });
    expect(late).toMatchObject({ ok: false, error: { code: "invalidRequest" } });
    expect(await runs.activeRun()).toBeUndefined();
    expect(existsSync(join(root, "started"))).toBe(false);
    expect(await runs.start({ runId: "next", stack: "dev", operation: { kind: "up" } })).toMatchObject({ ok: true });
    await runs.stop();
  });
}

test("a run that is being started is found, and cancelled if that is requested", async () => {
  const { promise: preparing, resolve: finishPreparing } = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<string>();
  const { runs } = managerOf(
    'case "$*" in *--skip-preview*) exec sleep 60;; esac',
    async (_, outcome) => ended.resolve(outcome),
    preparing,
  );
  const started = runs.start({ runId: "starting", stack: "dev", operation: { kind: "up" } });
  const watched = runs.watch({ runId: "starting", fromSeq: 1 }, new AbortController().signal);
  const cancelled = runs.cancel({ runId: "starting" });
  finishPreparing();
  expect(await started).toMatchObject({ ok: true, value: { state: "started" } });
  expect(await watched).toMatchObject({ ok: true });
  expect(await cancelled).toMatchObject({ ok: true, value: { state: "cancelling" } });
  expect(await ended.promise).toBe("cancelled");
});

test("the run has the trace of its Update, and its log the keys of the operator's", async () => {
  const ended = Promise.withResolvers<string>();
  const { root, lines, cli, runs } = managerOf('echo "$TRACEPARENT" > parent', async (_, outcome) =>
    ended.resolve(outcome),
  );
  const traceID = "0123456789abcdef0123456789abcdef";
  const traceparent = `00-${traceID}-0123456789abcdef-01`;
  const origin = { stack: "shop", update: "shop-1", traceparent };
  await runs.start({ runId: "traced", stack: "dev", operation: { kind: "up" }, origin });
  expect(await ended.promise).toBe("succeeded");
  await runs.stop();
  expect(readFileSync(join(root, "parent"), "utf8").trim()).toBe(traceparent);
  const messages = lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ msg }) => msg !== undefined);
  expect(messages.map(({ msg }) => msg)).toEqual(["run started", "run finished"]);
  for (const message of messages) {
    expect(message).toMatchObject({ stack: "shop", update: "shop-1", traceID, run: "traced" });
  }
  // Otherwise a plan could be applied only in the trace in which it was made.
  expect(await cli.environment()).not.toHaveProperty("TRACEPARENT");
});
