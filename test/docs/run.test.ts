/** .github/workflows/run.yaml: where its cache lies, when a job saves a new one, and how long its command may take. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { parse } from "yaml";

import { root } from "./pages.ts";

interface Step {
  readonly id?: string;
  readonly if?: string;
  readonly uses?: string;
  readonly run?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly with?: Readonly<Record<string, string>>;
}

interface Workflow {
  readonly jobs: {
    readonly run: {
      readonly container: { readonly volumes?: readonly string[] };
      readonly env: Readonly<Record<string, string>>;
      readonly "timeout-minutes": string;
      readonly steps: readonly Step[];
    };
  };
}

const { run } = (parse(readFileSync(join(root, ".github/workflows/run.yaml"), "utf8")) as Workflow).jobs;
const cache = run.env["PKO_CACHE"] ?? "";
const stepWith = (action: string): Step | undefined => run.steps.find(({ uses = "" }) => uses.startsWith(`${action}@`));

test("the cache is a directory of the host, because overlayfs rejects the container's root as an upper directory", () => {
  const mounted = run.container.volumes?.map((volume) => volume.split(":")[1]);
  expect(mounted).toContain(cache);
});

test("the directory that is restored and saved is the one that tools are built in", () => {
  expect(stepWith("actions/cache/restore")?.with?.["path"]).toBe(cache);
  expect(stepWith("actions/cache/save")?.with?.["path"]).toBe(cache);
});

test("what a job has built is saved even if it fails", () => {
  const save = run.steps.findIndex((step) => step === stepWith("actions/cache/save"));
  const command = run.steps.findIndex(({ run: script }) => script?.includes("$COMMAND"));
  expect(save).toBeGreaterThan(command);
  for (const step of [run.steps[save], run.steps.find(({ id }) => id === "contents")])
    expect(step?.if).toContain("!cancelled()");
});

describe("the command", () => {
  let folder = "";
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "run-"))));
  afterEach(() => rmSync(folder, { recursive: true }));

  const step = run.steps.find(({ run: script }) => script?.includes("$COMMAND"));

  function runCommand(command: string, path = ""): { readonly exitCode: number; readonly stdout: string } {
    const env = { PATH: `${path}:${process.env["PATH"]}`, COMMAND: command, MINUTES: "60" };
    const { exitCode, stdout } = Bun.spawnSync(["bash", "-eo", "pipefail", "-c", step?.run ?? "false"], { env });
    return { exitCode, stdout: stdout.toString() };
  }

  /** In `folder`. */
  function addTimeout(script: string): void {
    writeFileSync(join(folder, "timeout"), `#!/bin/bash\n${script}\n`, { mode: 0o755 });
  }

  test("ends ten minutes before its job, which is cancelled and then keeps neither cache nor logs", () => {
    for (const limit of [run["timeout-minutes"], step?.env?.["MINUTES"]]) expect(limit).toBe("${{ inputs.minutes }}");
    addTimeout('echo "$2"');
    expect(runCommand("true", folder).stdout).toBe("50m\n");
  });

  test("fails when it is ended, with everything that it has started", () => {
    // Seconds instead of minutes, and fewer.
    addTimeout('exec env PATH="${PATH#*:}" timeout "$1" 0.5 "${@:3}"');
    const started = Date.now();
    expect(runCommand("sleep 20 | cat", folder).exitCode).toBe(124);
    expect(Date.now() - started).toBeLessThan(15_000);
  });

  test("fails with any of its commands, and succeeds with all of them", () => {
    expect(runCommand("false | cat; true").exitCode).toBe(1);
    expect(runCommand('make() { echo "made $1"; }; make it')).toEqual({ exitCode: 0, stdout: "made it\n" });
  });
});

describe("the digest of the contents", () => {
  let folder = "";
  beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "run-"))));
  afterEach(() => rmSync(folder, { recursive: true }));

  const add = (path: string): unknown => mkdirSync(join(folder, "cache", path), { recursive: true });

  function readDigest(): string {
    const output = join(folder, "output");
    writeFileSync(output, "");
    const script = run.steps.find(({ id }) => id === "contents")?.run ?? "false";
    const env = { PATH: process.env["PATH"], PKO_CACHE: join(folder, "cache"), GITHUB_OUTPUT: output };
    const { success } = Bun.spawnSync(["bash", "-eo", "pipefail", "-c", script], { env });
    expect(success).toBe(true);
    const [, digest = ""] = /^digest=([0-9a-f]{12})\n$/.exec(readFileSync(output, "utf8")) ?? [];
    expect(digest).not.toBe("");
    return digest;
  }

  test("is another one when a tool was built", () => {
    add("tools/kube-1");
    const before = readDigest();
    add("tools/helm-1");
    expect(readDigest()).not.toBe(before);
  });

  test("stays the same if nothing was built but the image of this clone", () => {
    add("tools/kube-1");
    add("buildah/root/overlay/1");
    const before = readDigest();
    add("buildah/root/overlay/2");
    expect(readDigest()).toBe(before);
  });

  test("of an empty cache exists, too", () => {
    add("");
    readDigest();
  });
});
