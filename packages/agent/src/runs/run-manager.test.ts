import { expect, test } from "bun:test";
import { chmodSync, existsSync, writeFileSync } from "node:fs";
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

/** A CLI whose stack is locked until `pulumi cancel`. */
function lockedCli(root: string): string {
  const file = join(root, "pulumi");
  const script = `case "$*" in
*version*) echo v3.200.0;;
*cancel*) touch '${root}/cancelled';;
*) [ -e '${root}/cancelled' ] || { echo 'error: the stack is currently locked by 1 lock(s)
  ${lock}' >&2; exit 255; };;
esac`;
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  return file;
}

const target = (root: string, stack: string, project: string) => ({
  revision: "r",
  stack,
  project: { name: project, runtime: "go" },
  projectFolder: root,
  settings: join(root, "settings.yaml"),
});

const cases: readonly (readonly [string, string, string, boolean])[] = [
  ["the same stack", "dev", "demo", true],
  ["another stack", "prod", "demo", false],
  ["another project's stack of the same name", "dev", "other", false],
];
for (const [what, stack, project, isRemoved] of cases) {
  test(`the lock of a dead run of ${what} is ${isRemoved ? "removed" : "left alone"}`, async () => {
    const root = temporaryFolder();
    const redactor = new Redactor();
    const log = createLog(redactor, () => undefined);
    const signIn = new SignIn({ oidc: undefined, redactor, log });
    const cli = new PulumiCli({ file: lockedCli(root), state: join(root, "state"), inherited: {}, redactor, signIn });
    const operation = { kind: "up" as const };
    const dead = { step: 0, pid: holder.pid, startTicks: "1", startedAt: holder.startedAt, holder };
    const { startedAt } = holder;
    const record = { runId: "dead", operation, ready: target(root, stack, project), startedAt, launches: [dead] };
    await new RunFolder(join(root, "runs"), "dead").create(record);
    const ended = Promise.withResolvers<string>();
    const runs = new RunManager({
      runs: join(root, "runs"),
      cli,
      log,
      hostname: holder.hostname,
      namespace: undefined,
      graceSeconds: 1,
      agentVersion: "test",
      workspaceUid: undefined,
      targetFor: async () => ({ kind: "found", target: target(root, "dev", "demo") }),
      knowsSecrets: () => true,
      onResult: async (_, { outcome }) => ended.resolve(outcome),
    });
    await runs.start({ runId: "next", stack: "dev", operation });
    expect(await ended.promise).toBe(isRemoved ? "succeeded" : "failed");
    expect(existsSync(join(root, "cancelled"))).toBe(isRemoved);
  });
}
