/** Failures of programs, plugins and CLIs: each has a class and a message that a user can act on. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { buildAgent } from "@pko/agent/build";
import { program, stash, TestWorkspace, tools } from "./harness.ts";

setDefaultTimeout(300_000);

describe("programs", () => {
  test("an error of the program is in the result with its line", async () => {
    const web = await new TestWorkspace().start();
    const source = {
      kind: "files" as const,
      files: {
        "Pulumi.yaml":
          "name: demo\nruntime: yaml\nresources:\n  a:\n    type: pulumi:index:Stash\n    properties:\n      input: ${nope.x}\n",
      },
    };
    await web.prepare(source);
    const result = await web.run("up-1", { kind: "up" });
    expect(result).toMatchObject({ outcome: "failed", exitCode: 1, error: { class: "programError" } });
    expect(result.error?.message).toContain('"nope" not found');
    expect(result.error?.lines.join("\n")).toContain("on Pulumi.yaml line 7");
    expect(JSON.stringify(result)).not.toContain(String.raw`\u001b`);
  });

  test("a secret in an error is masked even if it is longer than the limit of a line", async () => {
    // A cloud key on one line, which the CLI does not know to be secret. Pulumi YAML errors quote the line.
    const secret = `canary-${"0123456789abcdef".repeat(150)}`;
    const web = await new TestWorkspace({ env: { CLOUD_CREDENTIALS: secret } }).start();
    const text = `name: demo\nruntime: yaml\noutputs:\n  a: "\${nope.x} ${secret}"\n`;
    await web.prepare({ kind: "files", files: { "Pulumi.yaml": text } });
    await web.startRun("up-1", { kind: "up" });
    const updates = JSON.stringify(await web.updates("up-1"));
    expect(updates).toContain("could not be found");
    expect(updates).toContain("[secret]");
    for (const text of [updates, web.log]) expect(text).not.toContain("canary-");
  });

  test("a plugin that cannot be downloaded", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({ resources: { a: { type: "random:RandomString", properties: { length: 5 } } } }));
    const result = await web.run("up-1", { kind: "up" });
    expect(result).toMatchObject({ outcome: "failed", error: { class: "pluginMissing" } });
    expect(result.error?.message).toContain("random");
  });

  test("a runtime that is not installed", async () => {
    const web = await new TestWorkspace().start();
    const failure = await web.tryPrepare({ kind: "files", files: { "Pulumi.yaml": "name: demo\nruntime: cobol\n" } });
    expect(failure).toMatchObject({ phase: "install", reason: "installFailed" });
    expect("lines" in failure && failure.lines.join("\n")).toContain("cobol");
  });

  test("a wrong passphrase", async () => {
    const web = await new TestWorkspace().start();
    const source = program({ resources: { a: stash("x") } });
    await web.prepare(source);
    await web.kill("SIGKILL");
    const wrong = new TestWorkspace({
      env: { PULUMI_BACKEND_URL: `file://${web.backend}`, PULUMI_CONFIG_PASSPHRASE: "nope" },
    });
    await wrong.start();
    const config = [{ key: "a", secret: true, value: { from: "value" as const, value: "canary" } }];
    const failure = await wrong.tryPrepare(source, { config });
    expect(failure).toMatchObject({ phase: "config", reason: "other" });
    expect("message" in failure && failure.message).toMatch(/passphrase/);
  });

  test("Pulumi Cloud without a token", async () => {
    const web = await new TestWorkspace({ env: { PULUMI_BACKEND_URL: "https://127.0.0.1:9" } }).start();
    const failure = await web.tryPrepare(program({}));
    expect(failure).toMatchObject({ phase: "stack", reason: "invalidToken" });
  });
});

describe("CLIs", () => {
  const pretend = (version: string) => `case "$*" in *" version") echo ${version}; exit 0;; esac`;

  test("one that is too old for the agent", async () => {
    const web = await new TestWorkspace({ beforeCli: pretend("v3.100.0") }).start();
    const failure = await web.tryPrepare(program({}));
    expect(failure).toMatchObject({ reason: "versionTooLow" });
    expect("message" in failure && failure.message).toMatch(/3\.100\.0.*3\.105\.0.*image/);
  });

  test("one that is too old for the operation", async () => {
    const web = await new TestWorkspace({ beforeCli: pretend("v3.150.0") }).start();
    await web.prepare(program({}));
    const result = await web.run("refresh-1", { kind: "refresh", runProgram: true });
    expect(result).toMatchObject({ outcome: "failed", error: { class: "versionTooLow" } });
    expect(result.error?.message).toContain("3.160.0");
    expect(await web.run("refresh-2", { kind: "refresh" })).toMatchObject({ outcome: "succeeded" });
  });

  test("a missing one", async () => {
    const web = await new TestWorkspace({ flags: ["--pulumi", "/nonexistent/pulumi"] }).start();
    const failure = await web.tryPrepare(program({}));
    expect(failure).toMatchObject({ reason: "toolMissing" });
    const info = await web.agent.info();
    expect(info.ok && info.value.pulumiVersion).toBeUndefined();
  });
});

describe("an unreadable file of variables", () => {
  test("fails a preparation with the file's name, but not the agent", async () => {
    const web = new TestWorkspace();
    const file = join(web.root, "variables");
    mkdirSync(file);
    const broken = new TestWorkspace({ env: { PULUMI_ENV: file } });
    await broken.start();
    const failure = await broken.tryPrepare(program({}));
    expect(failure).toMatchObject({ phase: "source", reason: "other" });
    expect("message" in failure && failure.message).toContain(`the file ${file} in PULUMI_ENV cannot be read`);
    expect(await broken.agent.info()).toMatchObject({ ok: true });
    rmSync(file, { recursive: true });
    await broken.prepare(program({}));
  });
});

describe("limits", () => {
  test("an event that is too large is dropped, and its outputs are read from the CLI", async () => {
    const web = await new TestWorkspace().start();
    const source = program(
      {
        variables: { big: { "fn::readFile": "./big.txt" } },
        resources: { a: stash("${big}") },
        outputs: { size: "${big}", small: "kept" },
      },
      { "big.txt": "x".repeat(300_000) },
    );
    await web.prepare(source);
    // The size of a request is limited, so the file is enlarged in place.
    writeFileSync(join(web.share, "workspace/big.txt"), "x".repeat(5_000_000));
    await web.startRun("up-1", { kind: "up" });
    const updates = await web.updates("up-1");
    expect(JSON.stringify(updates)).toMatch(/dropped an event of 50\d+ bytes/);
    expect(updates.at(-1)).toMatchObject({ type: "result", result: { outcome: "succeeded" } });
    const outputs = await web.agent.outputs({ runId: "up-1" });
    expect(outputs.ok || outputs.error).toMatchObject({ code: "tooLarge" });
    const info = await web.agent.info();
    expect(info.ok && info.value.residentBytes).toBeLessThan(200_000_000);
  });

  test("binary data in a property is deployed and reported, and so is the text that replaces it", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({ resources: { a: stash({ "fn::readFile": "./noise" }) } }, { noise: "x" }));
    const noise = join(web.share, "workspace/noise");
    writeFileSync(noise, Buffer.from(Array.from({ length: 4_096 }, (_, index) => index % 256)));
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({ outcome: "succeeded", progress: { created: 2 } });
    expect((await web.updates("up-1")).at(-1)).toMatchObject({ type: "result", result: { outcome: "succeeded" } });
    writeFileSync(noise, "x");
    expect(await web.run("up-2", { kind: "up" })).toMatchObject({ outcome: "succeeded", progress: { updated: 1 } });
  });

  test("endless output is kept on disk, and the result has its end", async () => {
    const noisy = 'case "$*" in *" up "*) head -c 30000000 /dev/zero | tr "\\0" "\\n"; echo the end;; esac';
    const web = await new TestWorkspace({ beforeCli: noisy }).start();
    await web.prepare(program({ resources: { a: stash("x") } }));
    const result = await web.run("up-1", { kind: "up" });
    expect(result.outcome).toBe("succeeded");
    expect(result.output.bytes).toBeGreaterThan(30_000_000);
    expect(result.output).toMatchObject({ truncated: true });
    expect(result.output.tail.length).toBeLessThanOrEqual(64 * 1024);
    expect(result.output.tail).toContain("the end");
    expect(statSync(join(web.share, "runs/up-1/stdout-0.log")).size).toBe(result.output.bytes);
  });

  test("the oldest runs are deleted", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({}));
    for (let index = 0; index < 22; index += 1) await web.run(`preview-${index}`, { kind: "preview" });
    expect((await web.updates("preview-0")).at(-1)).toMatchObject({ type: "lost", error: { code: "notFound" } });
    expect((await web.result("preview-21")).outcome).toBe("succeeded");
  });
});

describe("state that a crash left incomplete", () => {
  test("is ignored and rebuilt", async () => {
    const web = await new TestWorkspace().start();
    const source = program({ resources: { a: stash("x") } });
    await web.prepare(source);
    await web.run("up-1", { kind: "up" });
    await web.kill("SIGKILL");
    writeFileSync(join(web.share, "agent/state.json"), '{"source":{"rev');
    const events = join(web.share, "runs/up-1/events.ndjson");
    writeFileSync(events, `${readFileSync(events, "utf8")}{"type":"event","se`);
    mkdirSync(join(web.share, "runs/half"));
    writeFileSync(join(web.share, "runs/half/run.json"), "{");
    mkdirSync(join(web.share, "source.next"));
    await web.start();
    expect((await web.result("up-1")).outcome).toBe("succeeded");
    expect((await web.prepare(source)).changed).toMatchObject({ source: true, stack: true });
    expect(await web.run("up-2", { kind: "up" })).toMatchObject({ outcome: "succeeded", progress: { unchanged: 2 } });
  });
});

/** Starts the executable as a non-root user, with copies of the tools that this user can access. */
async function startRestricted(web: TestWorkspace): Promise<string> {
  const bin = join(web.root, "bin");
  mkdirSync(bin);
  // The user may not have access to the cache.
  for (const tool of tools) {
    const copy = join(bin, basename(tool));
    try {
      linkSync(tool, copy);
    } catch {
      copyFileSync(tool, copy);
    }
  }
  const agent = join(bin, "agent");
  buildAgent({ outfile: agent, version: "9.9.9" });
  // Like the bootstrap container.
  const installed = join(web.share, "agent-executable");
  execFileSync(agent, ["install", installed]);
  for (const folder of [web.root, web.share, web.backend, bin]) chownSync(folder, 1000, 1000);
  chmodSync(web.root, 0o755);
  await web.start({ command: ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", installed], path: bin });
  return installed;
}

describe.if(process.getuid?.() === 0)("a restricted workspace", () => {
  test("runs as a non-root user, without a writable home, as one executable", async () => {
    const web = new TestWorkspace({ env: { HOME: "/nonexistent", PULUMI_HOME: "" } });
    const installed = await startRestricted(web);
    for (const flag of ["version", "--version"]) {
      expect(execFileSync(installed, [flag], { encoding: "utf8" })).toBe("9.9.9\n");
    }
    for (const help of [["--help"], ["--port=1", "--help"], ["install", "--help"], ["repair", "--help"]]) {
      expect(execFileSync(installed, help, { encoding: "utf8", cwd: web.root })).toContain("Flags:");
    }
    expect(readdirSync(web.root)).not.toContain("--help");
    const item = { key: "token", secret: true, value: { from: "value" as const, value: "canary-uid" } };
    await web.prepare(program({ resources: { a: stash("x") } }), { config: [item] });
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    expect(statSync(join(web.share, "runs/up-1/result.json"))).toMatchObject({ uid: 1000 });
    const info = await web.agent.info();
    expect(info.ok && info.value).toMatchObject({ agentVersion: "9.9.9" });
    expect(info.ok && info.value.residentBytes).toBeLessThan(60_000_000);
  });

  test("finds the plugins of an image whose PULUMI_HOME is read-only", async () => {
    const image = mkdtempSync(join(tmpdir(), "pko-agent-image-"));
    try {
      chmodSync(image, 0o755);
      const plugin = join(image, "plugins/resource-demo-v1.2.3");
      mkdirSync(plugin, { recursive: true });
      writeFileSync(join(plugin, "pulumi-resource-demo"), "#!/bin/sh\n", { mode: 0o755 });
      const web = new TestWorkspace({ env: { PULUMI_HOME: image } });
      await startRestricted(web);
      await web.prepare(program({ resources: { a: stash("x") } }));
      expect(await web.run("up-1", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
      const env = { PATH: process.env["PATH"], PULUMI_HOME: join(web.share, "agent/home/.pulumi") };
      const list = execFileSync(join(web.root, "bin/pulumi"), ["plugin", "ls"], { env, encoding: "utf8" });
      expect(list).toMatch(/demo +resource +1\.2\.3/);
    } finally {
      rmSync(image, { recursive: true, force: true });
    }
  });
});
