/** A user's shell in the container: CLI commands work without options. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRepository, serveGit } from "@pko/agent/testing";
import type { Source } from "@pko/rpc";
import { pulumi, stash, TestWorkspace, toolFolders } from "./harness.ts";

setDefaultTimeout(300_000);

const root = mkdtempSync(join(tmpdir(), "pko-agent-shell-"));
const server = serveGit(root);
afterAll(async () => {
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

/** Runs a command in the folder in which `kubectl exec` starts a shell, with the container's variables. */
function runInShell(
  web: TestWorkspace,
  command: string,
  PWD: string | undefined = join(web.share, "workspace"),
): string {
  const env = {
    PATH: `${join(pulumi, "..")}:${toolFolders.join(":")}:${process.env["PATH"] ?? ""}`,
    HOME: join(web.root, "home"),
    PULUMI_HOME: join(web.root, "home/.pulumi"),
    PULUMI_BACKEND_URL: `file://${web.backend}`,
    PULUMI_CONFIG_PASSPHRASE: "canary-passphrase",
    PULUMI_FALLBACK_TO_STATE_SECRETS_MANAGER: "true",
    PULUMI_SKIP_UPDATE_CHECK: "true",
    PWD,
  };
  return execFileSync("sh", ["-c", command], { cwd: join(web.share, "workspace"), env, encoding: "utf8" });
}

const config = [
  { key: "region", value: { from: "value" as const, value: "eu" } },
  { key: "token", value: { from: "value" as const, value: "canary-token" }, secret: true },
];
const project = { name: "demo", runtime: "yaml" };
const yaml = (input: string) => JSON.stringify({ ...project, resources: { a: stash(input) } });

describe("a program in a folder of a repository", () => {
  const app = createRepository(root, "app");
  const web = new TestWorkspace();
  const bare = createRepository(root, "bare");
  const at = (commit: string, name = "app"): Source => ({
    kind: "git",
    url: `http://127.0.0.1:${server.port}/${name}.git`,
    commit,
    dir: "infra/web",
  });
  const own = "config:\n  demo:size: large\n";

  test("is the working directory, with the stack selected and its configuration", async () => {
    await web.start();
    const commit = app.commit({ "infra/web/Pulumi.yaml": yaml("one"), "infra/web/Pulumi.dev.yaml": own });
    await web.prepare(at(commit), { config });
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    expect(realpathSync(join(web.share, "workspace"))).toBe(realpathSync(join(web.share, "source/infra/web")));
    for (const PWD of [join(web.share, "workspace"), ""]) {
      expect(runInShell(web, "pulumi stack --show-name", PWD).trim()).toBe("dev");
    }
    expect(runInShell(web, "pulumi config get region && pulumi config get size && pulumi config get token")).toBe(
      "eu\nlarge\ncanary-token\n",
    );
    expect(runInShell(web, "pulumi preview --diff")).toContain("2 unchanged");
    expect(runInShell(web, "pulumi refresh --yes --skip-preview")).toContain("2 unchanged");
    expect(runInShell(web, "pulumi cancel --yes 2>&1")).toContain("has been canceled");
  });

  test("is unchanged for git, and its own settings stay the base of the stack's", async () => {
    expect(runInShell(web, "git status --porcelain")).toBe("");
    // The key that the spec no longer has is removed; the repository's key stays.
    await web.prepare(at(app.git("rev-parse", "main")), { config: config.slice(1) });
    expect(runInShell(web, "pulumi config --json | tr -d ' \\n'")).not.toContain("region");
    expect(runInShell(web, "pulumi config get size").trim()).toBe("large");
    const next = bare.commit({ "infra/web/Pulumi.yaml": yaml("two") });
    await web.prepare(at(next, "bare"), { config });
    expect(runInShell(web, "pulumi config --json")).not.toContain("size");
    expect(runInShell(web, "pulumi config get region").trim()).toBe("eu");
    expect(runInShell(web, "git status --porcelain")).toBe("");
    expect(await web.run("up-2", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
  });

  test("is in a working directory that exists, even if its folder is renamed and its project file is invalid", async () => {
    const moved = createRepository(root, "moved");
    const renamed = await new TestWorkspace().start();
    const folder = join(renamed.share, "workspace");
    await renamed.prepare(at(moved.commit({ "infra/web/Pulumi.yaml": yaml("one") }), "moved"));
    const commit = moved.commit({ "deploy/Pulumi.yaml": "name: [oops\n" });
    const source = { ...at(commit, "moved"), dir: "deploy" } as Source;
    expect(await renamed.tryPrepare(source)).toMatchObject({ reason: "projectInvalid" });
    expect(realpathSync(folder)).toBe(realpathSync(join(renamed.share, "source/deploy")));
  });

  test("is selected again after the stack was removed", async () => {
    expect(await web.run("removed", { kind: "destroy", remove: true })).toMatchObject({ outcome: "succeeded" });
    await web.prepare(at(bare.git("rev-parse", "main"), "bare"), { config });
    expect(runInShell(web, "pulumi stack --show-name").trim()).toBe("dev");
    expect(runInShell(web, "pulumi config get region").trim()).toBe("eu");
  });
});
