import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PulumiCli } from "../pulumi/cli.ts";
import { SignIn } from "../pulumi/cloud/sign-in.ts";
import { createLog } from "../system/log.ts";
import { Redactor } from "../system/redact.ts";
import { temporaryFolder } from "../testing/folders.ts";
import { ActiveRun } from "./active-run.ts";
import { EventLog } from "./event-log.ts";
import { followLaunch } from "./follow.ts";
import { adopt } from "./launcher.ts";
import { RunFolder, type RunRecord } from "./run-folder.ts";

const root = temporaryFolder();
const redactor = new Redactor();
const file = join(root, "pulumi");
writeFileSync(file, "#!/bin/sh\necho v3.200.0\n");
chmodSync(file, 0o755);
/** No process can have such a high PID. */
const deadProcess = { pid: 4_194_303, startTicks: "1" };

async function activeRun(runId: string, record: Partial<RunRecord> = {}, knowsSecrets = true) {
  const logged: string[] = [];
  const log = createLog(redactor, (line) => logged.push(line));
  const folder = new RunFolder(root, runId);
  mkdirSync(folder.path);
  const signIn = new SignIn({ oidc: undefined, redactor, log });
  const cli = new PulumiCli({ file, state: join(root, "state"), inherited: {}, redactor, signIn });
  const context = {
    cli,
    log,
    hostname: "web",
    namespace: "team-a",
    earlierLaunches: [],
    mayHavePending: false,
    graceSeconds: 1,
    workspaceUid: undefined,
    knowsSecrets,
  };
  const ready = {
    revision: "r",
    stack: "dev",
    project: { name: "demo", runtime: "yaml" },
    projectFolder: root,
    settings: join(root, "settings.yaml"),
  };
  const all: RunRecord = {
    runId,
    operation: { kind: "up" },
    ready,
    startedAt: new Date().toISOString(),
    launches: [{ step: 0, ...deadProcess }],
    ...record,
  };
  const run = new ActiveRun(folder, all, { events: await EventLog.open(folder), context });
  return { run, folder, logged, log };
}

/** A folder where the record should be: it cannot be written, not even by root. */
function block(folder: RunFolder): void {
  mkdirSync(join(folder.path, "run.json"));
  writeFileSync(folder.stdout(0), "");
}

describe("a disk error", () => {
  test("does not prevent the cancellation of a run", async () => {
    const { run, folder, logged } = await activeRun("cancelled");
    block(folder);
    await run.cancel("asked");
    expect(logged.join("")).toContain("cannot store the cancellation");
    expect((await run.run()).outcome).toBe("cancelled");
  });

  test("does not prevent the end of a cancelled run of an earlier agent process", async () => {
    const { run, folder } = await activeRun("taken-over", { cancelled: "asked" });
    block(folder);
    expect((await run.run()).outcome).toBe("cancelled");
  });

  test("loses a run's output, but not its result", async () => {
    const { run, folder, logged } = await activeRun("unreadable");
    mkdirSync(folder.stdout(0));
    const result = await run.run();
    expect(result).toMatchObject({
      outcome: "failed",
      error: { class: "other" },
      output: { tail: "", truncated: true },
    });
    expect(result.error?.message).toContain("EISDIR");
    expect(logged.join("")).toContain("cannot read the output");
  });

  test("is logged with its stack trace", async () => {
    const { run, folder, logged } = await activeRun("traced");
    mkdirSync(folder.stdout(0));
    await run.run();
    const lines = logged.map((line) => JSON.parse(line) as { msg: string; error?: { stack?: string } });
    const traceOf = (message: string) => lines.find(({ msg }) => msg === message)?.error?.stack;
    expect(traceOf("unexpected error in run")).toContain("EISDIR");
    // The CLI of this test exports no state.
    expect(traceOf("cannot read the pending operations in the state")).toContain("ENOENT");
  });

  test("loses only a run's link", async () => {
    const { run, folder, log, logged } = await activeRun("no-output");
    const summary = {
      sequence: 1,
      summaryEvent: { resourceChanges: { same: 1 }, durationSeconds: 1, result: "succeeded" },
    };
    writeFileSync(folder.engineLog(0), `${JSON.stringify(summary)}\n`);
    const clean = (text: string) => redactor.clean(text);
    const options = {
      folder,
      launch: 0,
      events: run.events,
      kind: "change" as const,
      isDriftCheck: false,
      isProgram: false,
      pollMs: 5,
      clean,
      log,
      shows: "everything" as const,
    };
    expect(await followLaunch(adopt(deadProcess, 5), options)).toMatchObject({
      summary: "succeeded",
      changes: { same: 1 },
    });
    expect(logged.join("")).toContain("cannot read the Pulumi Cloud link");
    await run.events.close();
  });
});

describe("the report of a failed run", () => {
  const stdout = "Updating (dev):\nconnect with canary-of-git\n";
  const stderr = "I0101 http.go:1] token canary-of-aws\nerror: plugin crashed\nI0101 http.go:2] canary-of-aws\n";
  const failed = { sequence: 1, diagnosticEvent: { severity: "error", message: "no route to canary-of-git" } };

  test("has everything that it printed", async () => {
    const { run, folder } = await activeRun("shown");
    writeFileSync(folder.stdout(0), stdout);
    writeFileSync(folder.stderr(0), stderr);
    const { error } = await run.run();
    expect(error?.lines).toEqual(["error: plugin crashed", "I0101 http.go:2] canary-of-aws"]);
  });

  test("has only the CLI's own errors from a verbose log, which may contain credentials", async () => {
    const { run, folder, logged } = await activeRun("verbose", { operation: { kind: "up", logLevel: 9 } });
    writeFileSync(folder.stdout(0), stdout);
    writeFileSync(folder.stderr(0), stderr);
    const { error, output } = await run.run();
    expect(error?.lines).toEqual(["error: plugin crashed"]);
    expect(output.tail).toBe(stdout);
    expect(logged.join("")).not.toContain("canary-of-aws");
  });

  test("has no output if the agent does not know the secrets", async () => {
    const { run, folder, logged } = await activeRun("restarted", {}, false);
    writeFileSync(folder.stdout(0), stdout);
    writeFileSync(folder.stderr(0), stderr);
    writeFileSync(folder.engineLog(0), `${JSON.stringify(failed)}\n`);
    const result = await run.run();
    const notice = `the output is not shown, because the workspace's agent was restarted and does not know all secrets that it should mask; read it with kubectl exec in the pod's folder ${folder.path}`;
    expect(result).toMatchObject({ outcome: "interrupted", error: { lines: [notice] }, output: { tail: notice } });
    expect(JSON.stringify(result) + logged.join("")).not.toContain("canary");
    expect(logged.join("")).toContain("output is in a file in the pod");
    expect(await Bun.file(folder.events).exists()).toBe(false);
  });
});
