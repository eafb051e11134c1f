/** Sources in a running workspace: the work for a new commit, what is kept, and rejected sources that change nothing. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRepository, serveGit } from "@pko/agent/testing";
import type { Source } from "@pko/rpc";
import { waitFor } from "@pko/testkit";
import { program, stash, TestWorkspace } from "./harness.ts";

setDefaultTimeout(300_000);

const root = mkdtempSync(join(tmpdir(), "pko-agent-git-"));
const server = serveGit(root);
afterAll(async () => {
  await server.stop();
  rmSync(root, { recursive: true, force: true });
});

const yaml = (input: string) => JSON.stringify({ name: "demo", runtime: "yaml", resources: { a: stash(input) } });
const git = (name: string, more: object): Source => ({
  kind: "git",
  url: `http://127.0.0.1:${server.port}/${name}.git`,
  ...more,
});

describe("a repository", () => {
  const app = createRepository(root, "app");
  const web = new TestWorkspace();

  test("is prepared and run, and its next commit runs in the same workspace", async () => {
    await web.start();
    const one = app.commit({ "infra/Pulumi.yaml": yaml("one"), "README.md": "x" });
    const first = await web.prepare(git("app", { commit: one, dir: "infra" }));
    expect(first.revision).toBe(one);
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({ outcome: "succeeded", revision: one });

    const two = app.commit({ "infra/Pulumi.yaml": yaml("two") });
    const calls = web.cliCalls().length;
    const compareWith = { commit: one, pathFilters: ["infra/**"] };
    const second = await web.prepare(git("app", { commit: two, dir: "infra", compareWith }));
    expect(second.unchangedSince).toBeUndefined();
    expect(second.changed).toEqual({ source: true, dependencies: false, stack: false, config: false });
    expect(web.cliCalls()).toHaveLength(calls);
    expect(await web.run("up-2", { kind: "up" })).toMatchObject({ revision: two, changes: { update: 1, same: 1 } });
    expect(existsSync(join(web.share, "source/README.md"))).toBe(false);
  });

  test("is not fetched again for the same commit; an unchanged branch is queried, but not checked out again", async () => {
    const head = app.git("rev-parse", "main");
    const before = server.requests.length;
    await web.prepare(git("app", { commit: head, dir: "infra" }));
    // The commit before is present, too.
    const earlier = app.git("rev-parse", "main~1");
    const compareWith = { commit: earlier, pathFilters: ["docs/**"] };
    const compared = await web.prepare(git("app", { commit: head, dir: "infra", compareWith }));
    expect(compared).toMatchObject({ unchangedSince: earlier, changed: { source: false } });
    expect(server.requests.length).toBe(before);
    await web.prepare(git("app", { ref: "main", dir: "infra" }));
    const { ino } = statSync(join(web.share, "workspace"));
    const again = await web.prepare(git("app", { ref: "main", dir: "./infra/" }));
    expect(again.changed.source).toBe(false);
    expect(statSync(join(web.share, "workspace")).ino).toBe(ino);
    expect(server.requests.length).toBeGreaterThan(before);
  });

  test("that fails leaves the workspace unchanged, and the next preparation recovers", async () => {
    const tree = () => readFileSync(join(web.share, "source/infra/Pulumi.yaml"), "utf8");
    const before = tree();
    const good = git("app", { ref: "main", dir: "infra" });
    const links = createRepository(root, "links");
    links.commit({
      "Pulumi.yaml": yaml("x"),
      out: "->/etc",
      up: "->../../..",
      alias: "->real",
      "real/Pulumi.yaml": yaml("y"),
      "evil/Pulumi.yaml": "->/etc/passwd",
      "config/Pulumi.yaml": "name: demo\nruntime: yaml\nstackConfigDir: ../../../etc\n",
    });
    const cases: [Source, string][] = [
      [git("app", { ref: "nope" }), "sourceNotFound"],
      [git("app", { ref: "main", dir: "../.." }), "sourceInvalid"],
      [git("app", { ref: "main", dir: "infra/../../x" }), "sourceInvalid"],
      [git("app", { ref: "main", dir: "/etc" }), "sourceNotFound"],
      [git("app", { ref: "main", dir: "missing" }), "sourceNotFound"],
      [git("app", { ref: "main", dir: "infra/Pulumi.yaml" }), "sourceNotFound"],
      [git("app", { ref: "main", dir: "a\0b" }), "sourceInvalid"],
      [git("links", { ref: "main", dir: "out" }), "sourceInvalid"],
      [git("links", { ref: "main", dir: "up" }), "sourceInvalid"],
      [{ kind: "git", url: "ext::sh -c id", ref: "main" }, "sourceInvalid"],
      [{ kind: "git", url: "file:///etc", ref: "main" }, "sourceInvalid"],
      [{ kind: "git", url: "--upload-pack=id", ref: "main" }, "sourceInvalid"],
      [{ kind: "files", files: { "../escape": "x" } }, "sourceInvalid"],
      [{ kind: "files", files: { "/etc/escape": "x" } }, "sourceInvalid"],
      [{ kind: "files", files: { a: "x", "a/b": "y" } }, "sourceInvalid"],
      [{ kind: "files", files: { ".git/hooks/post-checkout": "x" } }, "sourceInvalid"],
      [{ kind: "local", dir: "relative" }, "sourceInvalid"],
      [{ kind: "local", dir: "/etc/../root" }, "sourceInvalid"],
      [{ kind: "local", dir: "/etc/no-such-folder" }, "sourceNotFound"],
      [{ kind: "project", name: "../x", runtime: "yaml" }, "sourceInvalid"],
      [{ kind: "flux", url: "http://169.254.169.254/x", digest: `sha256:${"0".repeat(64)}` }, "sourceInvalid"],
    ];
    for (const [source, reason] of cases) {
      const failure = await web.tryPrepare(source);
      expect({ source, ...failure }).toMatchObject({ phase: "source", reason });
      expect(tree()).toBe(before);
      const start = await web.agent.start({ runId: "never", operation: { kind: "up" } });
      expect(start.ok || start.error.code).toBe("unprepared");
    }
    await web.prepare(good);
    expect(tree()).toBe(before);
    expect(await web.run("up-3", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    expect(readdirSync(web.share).toSorted()).toEqual(["agent", "runs", "source", "workspace"]);
  });

  test("may have links within itself, but no project file that is a link outside", async () => {
    expect((await web.prepare(git("links", { ref: "main", dir: "alias" }))).project.name).toBe("demo");
    for (const dir of ["evil", "config"]) {
      const failure = await web.tryPrepare(git("links", { ref: "main", dir }));
      expect(failure).toMatchObject({ phase: "source", reason: "projectInvalid" });
      expect(JSON.stringify(failure)).not.toContain("root:");
    }
  });
});

describe("invalid projects", () => {
  const cases: Record<string, { files: Record<string, string>; message: RegExp }> = {
    "no project file": { files: { "main.py": "" }, message: /no Pulumi\.yaml/ },
    "a project file that is not YAML": { files: { "Pulumi.yaml": "name: [x\n\tb" }, message: /not valid YAML/ },
    "no name": { files: { "Pulumi.yaml": "runtime: yaml\n" }, message: /no name/ },
    "no runtime": { files: { "Pulumi.yaml": "name: x\n" }, message: /no valid runtime/ },
    "a list": { files: { "Pulumi.yaml": "- a\n" }, message: /no name/ },
    "a bomb of aliases": {
      files: {
        "Pulumi.yaml": `name: x\nruntime: yaml\na: &a [1,1,1,1,1,1,1,1,1]\n${"bcdefghi"
          .split("")
          .map(
            (name, index) =>
              `${name}: &${name} [${Array.from({ length: 9 }, () => `*${"abcdefgh"[index]}`).join(",")}]`,
          )
          .join("\n")}\n`,
      },
      message: /not valid YAML/,
    },
  };
  test("are reported with the reason", async () => {
    const web = await new TestWorkspace().start();
    for (const { files, message } of Object.values(cases)) {
      const failure = await web.tryPrepare({ kind: "files", files });
      expect(failure).toMatchObject({ phase: "source", reason: "projectInvalid" });
      expect("message" in failure && failure.message).toMatch(message);
    }
  });
});

describe("a folder of the image", () => {
  test("is used in place, and gets only a link to the stack's settings", async () => {
    const web = await new TestWorkspace().start();
    const folder = join(web.root, "image/app");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "Pulumi.yaml"), yaml("local"));
    const item = { key: "a", secret: true, value: { from: "value" as const, value: "canary-local" } };
    await web.prepare({ kind: "local", dir: folder }, { config: [item] });
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    expect(readdirSync(folder).toSorted()).toEqual(["Pulumi.dev.yaml", "Pulumi.yaml"]);
    expect(readlinkSync(join(folder, "Pulumi.dev.yaml"))).toMatch(/\/agent\/stacks\/\w+\/settings\.yaml$/);
    expect((await web.prepare({ kind: "local", dir: folder }, { config: [item] })).changed.source).toBe(false);
    // An existing settings file in the folder stays unchanged.
    const settings = join(folder, "Pulumi.prod.yaml");
    writeFileSync(settings, "config: {}\n");
    await web.prepare({ kind: "local", dir: folder }, { name: "prod", config: [item] });
    expect(readFileSync(settings, "utf8")).toBe("config: {}\n");
    expect(lstatSync(settings).isFile()).toBe(true);
  });
});

describe("dependencies", () => {
  const node = (more: Record<string, string>): Source => ({
    kind: "files",
    files: {
      "Pulumi.yaml": "name: demo\nruntime: nodejs\n",
      "package.json": JSON.stringify({ name: "app", version: "1.0.0", dependencies: { helper: "file:./helper" } }),
      "helper/package.json": JSON.stringify({ name: "helper", version: "1.0.0" }),
      "index.js": "1\n",
      ...more,
    },
  });
  const installs = (web: TestWorkspace) => web.cliCalls().filter((call) => call.endsWith(" install")).length;

  test("are installed once, and again only when a manifest changes", async () => {
    const web = await new TestWorkspace().start();
    expect((await web.prepare(node({}))).changed.dependencies).toBe(true);
    const installed = join(web.share, "workspace/node_modules/helper");
    expect(existsSync(installed)).toBe(true);
    writeFileSync(join(web.share, "workspace/node_modules/marker"), "kept");

    expect((await web.prepare(node({ "index.js": "2\n" }))).changed).toMatchObject({
      source: true,
      dependencies: false,
    });
    expect(readFileSync(join(web.share, "workspace/node_modules/marker"), "utf8")).toBe("kept");
    expect(existsSync(installed)).toBe(true);
    expect(installs(web)).toBe(1);

    const more = { dependencies: { helper: "file:./helper", other: "file:./other" } };
    const changed = await web.prepare(
      node({
        "package.json": JSON.stringify({ name: "app", version: "1.0.0", ...more }),
        "other/package.json": JSON.stringify({ name: "other", version: "1.0.0" }),
      }),
    );
    expect(changed.changed.dependencies).toBe(true);
    expect(existsSync(join(web.share, "workspace/node_modules/other"))).toBe(true);
    expect(installs(web)).toBe(2);
  });

  test("that cannot be installed are reported and retried", async () => {
    const web = await new TestWorkspace().start();
    const broken = node({ "package.json": JSON.stringify({ name: "app", dependencies: { nope: "file:./nope.tgz" } }) });
    for (let attempt = 0; attempt < 2; attempt += 1) {
      const failure = await web.tryPrepare(broken);
      expect(failure).toMatchObject({ phase: "install", reason: "installFailed" });
      expect("lines" in failure && failure.lines.join("\n")).toContain("nope.tgz");
    }
    expect(installs(web)).toBe(2);
    expect((await web.prepare(node({}))).changed.dependencies).toBe(true);
  });

  test("of a project without its source are not installed", async () => {
    const web = await new TestWorkspace().start();
    const prepared = await web.prepare({ kind: "project", name: "demo", runtime: "nodejs" });
    expect(prepared.changed.dependencies).toBe(false);
    expect(installs(web)).toBe(0);
  });

  test("of a YAML program need no installation", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({ resources: { a: stash("x") } }));
    expect(installs(web)).toBe(0);
  });

  test("of a compiled program need neither an installation nor a compiler", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({ runtime: { name: "go", options: { binary: "demo" } } }));
    expect(installs(web)).toBe(0);
  });

  test("that are packages of a YAML program are installed once and carried over to the next revision", async () => {
    const web = await new TestWorkspace().start();
    const folder = join(web.root, "greeting");
    mkdirSync(folder);
    writeFileSync(join(folder, "PulumiPlugin.yaml"), "runtime: yaml\n");
    const greeter = { resources: { greeting: stash("hello") }, outputs: { text: "${greeting.output}" } };
    writeFileSync(
      join(folder, "Pulumi.yaml"),
      JSON.stringify({ name: "greeting", runtime: "yaml", components: { greeter } }),
    );
    const using = (text: string) =>
      program({
        packages: { greeting: folder },
        resources: { greeter: { type: "greeting:index:greeter" } },
        outputs: { text: `\${greeter.text} ${text}` },
      });
    expect((await web.prepare(using("one"))).changed.dependencies).toBe(true);
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    expect((await web.prepare(using("two"))).changed).toMatchObject({ source: true, dependencies: false });
    expect(existsSync(join(web.share, "workspace/sdks/greeting"))).toBe(true);
    expect(await web.run("up-2", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    expect(await web.outputs("up-2")).toMatchObject([{ name: "text", value: "hello two" }]);
    expect(installs(web)).toBe(1);
  });
});

describe("preparations that overlap", () => {
  test("the same request joins, another request replaces it", async () => {
    const web = await new TestWorkspace({ beforeCli: firstSelectionHangs }).start();
    const request = (input: string) => ({
      source: program({ resources: { a: stash(input) } }),
      stacks: [{ name: "dev", create: true, config: [], environments: [] }],
    });
    const [one, same] = [web.agent.prepare(request("one")), web.agent.prepare(request("one"))];
    await waitFor(() => selections(web).length === 1, { what: "the start of the first selection" });
    const two = web.agent.prepare(request("two"));
    const start = await web.agent.start({ runId: "up-1", operation: { kind: "up" } });
    expect(start.ok || start.error.code).toBe("busy");
    for (const reply of [await one, await same]) {
      expect(reply.ok && !reply.value.ok && reply.value.failure.reason).toBe("superseded");
    }
    const last = await two;
    expect(last.ok && last.value.ok).toBe(true);
    expect(readFileSync(join(web.share, "workspace/Pulumi.yaml"), "utf8")).toContain("two");
    expect(selections(web)).toHaveLength(2);
  });
});

/** Hangs until it is superseded. */
const firstSelectionHangs = 'case "$*" in *select*) mkdir "$0.selected" 2>/dev/null && sleep 60;; esac';

const selections = (workspace: TestWorkspace): string[] =>
  workspace.cliCalls().filter((call) => call.includes("select"));
