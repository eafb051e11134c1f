/** Compares the configuration that the agent writes with the CLI's own for the same values. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigItem } from "@pko/rpc";
import { program, pulumi, stash, TestWorkspace, toolFolders } from "./harness.ts";

setDefaultTimeout(180_000);

const value = (key: string, content: unknown, more: Partial<ConfigItem> = {}): ConfigItem => ({
  key,
  value: { from: "value", value: content },
  ...more,
});

function cli(web: TestWorkspace, cwd: string, ...args: string[]): string {
  return execFileSync(pulumi, ["--non-interactive", ...args], {
    cwd,
    encoding: "utf8",
    env: {
      PATH: `${toolFolders.join(":")}:${process.env["PATH"] ?? ""}`,
      HOME: join(web.root, "home"),
      PULUMI_BACKEND_URL: `file://${web.backend}`,
      PULUMI_CONFIG_PASSPHRASE: "canary-passphrase",
      PULUMI_SKIP_UPDATE_CHECK: "true",
    },
  });
}

function settingsFile(web: TestWorkspace): string {
  const stacks = join(web.share, "agent/stacks");
  return join(stacks, readdirSync(stacks)[0] ?? "", "settings.yaml");
}

/** What the CLI reads from a settings file. */
function readBack(web: TestWorkspace, file: string): unknown {
  const cwd = join(web.share, "workspace");
  return JSON.parse(cli(web, cwd, "config", "--json", "--show-secrets", "--stack=dev", `--config-file=${file}`));
}

describe("configuration", () => {
  test("is read by the CLI as if the CLI had set it", async () => {
    const web = await new TestWorkspace().start();
    const items = [
      value("text", "hello"),
      value("aws:region", "eu-west-1"),
      value("number", 5),
      value("float", 1.25),
      value("flag", true),
      value("digits", "0123"),
      value("odd", "yes: #no\n\ttab 'q' \"d\" ü 🙂"),
      value("object", { a: [1, "2", { b: null, c: false }], "x.y": "z" }),
      value("list", ["a", 1, true]),
      value("token", "canary-token", { secret: true }),
      value("lines", "canary-a\ncanary-b\n\n", { secret: true }),
    ];
    await web.prepare(program({ resources: { a: stash("x") } }), { config: items });

    const folder = mkdtempSync(join(web.root, "reference-"));
    writeFileSync(join(folder, "Pulumi.yaml"), "name: demo\nruntime: yaml\n");
    const file = join(folder, "reference.yaml");
    const json: Record<string, object> = {};
    for (const { key, value: from, secret = false } of items) {
      const it = from.from === "value" ? from.value : undefined;
      const isText = typeof it === "string";
      json[key.includes(":") ? key : `demo:${key}`] = {
        value: isText ? it : JSON.stringify(it),
        ...(!isText && { objectValue: it }),
        secret,
      };
    }
    cli(web, folder, "config", "set-all", "--stack=dev", `--config-file=${file}`, "--json", JSON.stringify(json));
    expect(readBack(web, settingsFile(web))).toEqual(readBack(web, file));
  });

  test("by path is also read as if the CLI had set it", async () => {
    const web = await new TestWorkspace().start();
    const paths: [string, string, boolean][] = [
      ["outer.inner", "text", false],
      ["outer.flag", "true", false],
      ["outer.count", "42", false],
      ["outer.big", "12345678901234567890", false],
      ["outer.code", "007", false],
      ["outer.below", "-05", false],
      ["outer.above", "+5", false],
      ["outer.huge", "99999999999999999999", false],
      ["list[0]", "a", false],
      ["list[1].name", "b", false],
      ['outer["dotted.key"]', "c", false],
      ["outer.password", "canary-path", true],
      ["aws:tags.team", "web", false],
    ];
    const config = paths.map(([key, it, secret]) => value(key, it, { path: true, secret }));
    await web.prepare(program({ resources: { a: stash("x") } }), { config });
    const folder = mkdtempSync(join(web.root, "reference-"));
    writeFileSync(join(folder, "Pulumi.yaml"), "name: demo\nruntime: yaml\n");
    const file = join(folder, "reference.yaml");
    const args = paths.flatMap(([key, it, secret]) => [secret ? "--secret" : "--plaintext", `${key}=${it}`]);
    cli(web, folder, "config", "set-all", "--path", "--stack=dev", `--config-file=${file}`, ...args);
    expect(readBack(web, settingsFile(web))).toEqual(readBack(web, file));
  });

  test("reaches the program, including secrets, whose values are never in arguments", async () => {
    const web = await new TestWorkspace().start();
    const source = program({
      config: { name: { type: "string" }, count: { type: "integer" }, token: { type: "string" } },
      resources: { a: stash({ name: "${name}", count: "${count}" }), b: stash("${token}") },
      outputs: { plain: "${a.output}", secret: "${b.output}" },
    });
    const config = [value("name", "web"), value("count", 3), value("token", "canary-value", { secret: true })];
    await web.prepare(source, { config });
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    expect(await web.outputs("up-1")).toEqual([
      { name: "plain", secret: false, known: true, value: { name: "web", count: 3 } },
      { name: "secret", secret: true, known: true, value: "canary-value" },
    ]);
    expect(web.cliCalls().join("\n")).not.toContain("canary");
    expect(web.log).not.toContain("canary");
    expect(readFileSync(settingsFile(web), "utf8")).not.toContain("canary");
  });

  test("of secrets needs one command each, and none if they are unchanged", async () => {
    const web = await new TestWorkspace().start();
    const secrets = (count: number) =>
      Array.from({ length: count }, (_, index) => value(`s${index}`, `canary-${index}`, { secret: true }));
    const encryptions = () => web.cliCalls().filter((call) => call.includes("config set --secret")).length;
    await web.prepare(program({ resources: { a: stash("x") } }), { config: secrets(5) });
    expect(encryptions()).toBe(5);
    const again = await web.prepare(program({ resources: { a: stash("y") } }), { config: secrets(5) });
    expect(again.changed).toMatchObject({ source: true, config: false });
    await web.prepare(program({ resources: { a: stash("y") } }), { config: secrets(6) });
    expect(encryptions()).toBe(6);
    const back = readBack(web, settingsFile(web)) as Record<string, { value: string; secret: boolean }>;
    expect(Object.values(back).map((entry) => entry.value)).toEqual(
      [0, 1, 2, 3, 4, 5].map((index) => `canary-${index}`),
    );
  });

  test("can come from variables and files of the workspace, as text or as JSON", async () => {
    const web = new TestWorkspace({ env: { FROM_ENV: '{"a":[1]}' } });
    mkdirSync(join(web.root, "secrets"));
    writeFileSync(join(web.root, "secrets/token"), "canary-file\n");
    await web.start();
    const config: ConfigItem[] = [
      { key: "text", value: { from: "env", name: "FROM_ENV" } },
      { key: "object", value: { from: "env", name: "FROM_ENV", json: true } },
      { key: "token", secret: true, value: { from: "file", path: join(web.root, "secrets/token") } },
    ];
    await web.prepare(program({ resources: { a: stash("x") } }), { config });
    expect(readBack(web, settingsFile(web))).toMatchObject({
      "demo:text": { value: '{"a":[1]}' },
      "demo:object": { objectValue: { a: [1] } },
      "demo:token": { value: "canary-file\n", secret: true },
    });
  });

  test("is removed with its key; the repository's own stays", async () => {
    const web = await new TestWorkspace().start();
    const own = { "Pulumi.dev.yaml": "config:\n  demo:own: base\n  demo:both: base\nenvironment:\n  - base-env\n" };
    const source = program({ resources: { a: stash("x") } }, own);
    await web.prepare(source, { config: [value("both", "over"), value("mine", "1")] });
    const keys = () => readFileSync(settingsFile(web), "utf8");
    expect(keys()).toContain('demo:both: "over"');
    expect(keys()).toContain("demo:mine");
    const changed = await web.prepare(source, { environments: ["team/prod"] });
    expect(changed.changed.config).toBe(true);
    expect(keys()).toContain("demo:both: base");
    expect(keys()).toContain("demo:own: base");
    expect(keys()).not.toContain("demo:mine");
    expect(keys()).toMatch(/environment:\n {2}- base-env\n {2}- "team\/prod"/);
    await web.prepare(source, {});
    expect(keys()).not.toContain("team/prod");
    // A shell in the program's folder sees the same.
    expect(readFileSync(join(web.share, "workspace/Pulumi.dev.yaml"), "utf8")).toBe(keys());
  });

  test("in the repository's settings file may contain secrets", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({ resources: { a: stash("x") } }), {
      config: [value("token", "canary-repo", { secret: true })],
    });
    const committed = readFileSync(settingsFile(web), "utf8");
    const source = program(
      { config: { token: { type: "string" } }, resources: { a: stash("${token}") }, outputs: { t: "${a.output}" } },
      { "Pulumi.dev.yaml": committed },
    );
    await web.prepare(source, { config: [value("other", "canary-other", { secret: true })] });
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    expect(await web.outputs("up-1")).toMatchObject([{ name: "t", value: "canary-repo" }]);
  });
});

describe("invalid configuration", () => {
  const source = program({ resources: { a: stash("x") } });
  const cases: Record<string, { item: ConfigItem; message: RegExp }> = {
    "an invalid key": { item: value("a:b:c", "x"), message: /a:b:c/ },
    "a null value": { item: value("a", null), message: /a is null or missing/ },
    "a missing variable": { item: { key: "a", value: { from: "env", name: "NOPE" } }, message: /NOPE is not set/ },
    "a missing file": { item: { key: "a", value: { from: "file", path: "/nope" } }, message: /\/nope does not exist/ },
    "a folder instead of a file": {
      item: { key: "a", value: { from: "file", path: "/etc" } },
      message: /not readable/,
    },
    "a variable that is not JSON": {
      item: { key: "a", value: { from: "env", name: "HOME", json: true } },
      message: /a cannot be used: .*not valid JSON/,
    },
    "a reserved map": { item: value("a", { secure: "x" }), message: /reserved/ },
  };
  test("is reported with its key", async () => {
    const web = await new TestWorkspace().start();
    for (const { item, message } of Object.values(cases)) {
      const failure = await web.tryPrepare(source, { config: [item] });
      expect(failure).toMatchObject({ phase: "config", reason: "configInvalid" });
      expect("message" in failure && failure.message).toMatch(message);
    }
  });

  test("includes invalid stack names", async () => {
    const web = await new TestWorkspace().start();
    for (const name of ["--help", "a b", "../x", "a/b/c/d", "x\ny", "-x"]) {
      const failure = await web.tryPrepare(source, { name });
      expect(failure).toMatchObject({ reason: "configInvalid" });
    }
  });
});
