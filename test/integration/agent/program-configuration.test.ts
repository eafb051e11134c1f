/** What Pulumi YAML does with the field `configuration` of a Program, and what the operator reports of it (ADR 45). */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConfigItem } from "@pko/rpc";
import { program, TestWorkspace } from "./harness.ts";

setDefaultTimeout(300_000);

const value = (key: string, content: unknown, more: Partial<ConfigItem> = {}): ConfigItem => ({
  key,
  value: { from: "value", value: content },
  ...more,
});

const deprecated = "field is deprecated";

/** By name: the declaration, and what the program gets. `config` has values for some of them. */
const forms: Readonly<Record<string, { readonly declared: object; readonly expected: unknown }>> = {
  text: { declared: { type: "String", default: "x" }, expected: "x" },
  digits: { declared: { type: "string", default: "123" }, expected: "123" },
  flagText: { declared: { type: "String", default: "true" }, expected: "true" },
  number: { declared: { type: "Number", default: 1.5 }, expected: 1.5 },
  integer: { declared: { type: "integer", default: 3 }, expected: 3 },
  flag: { declared: { type: "Boolean", default: true }, expected: true },
  list: { declared: { type: "List<String>", default: ["a", "b"] }, expected: ["a", "b"] },
  numbers: { declared: { type: "List<Number>", default: [1, 2.5] }, expected: [1, 2.5] },
  object: { declared: { type: "Object", default: { a: "b" } }, expected: { a: "b" } },
  untyped: { declared: { default: "y" }, expected: "y" },
  computed: { declared: { default: "${pulumi.stack}" }, expected: "dev" },
  hidden: { declared: { type: "String", default: "canary-default", secret: true }, expected: "canary-default" },
  plainKey: { declared: { type: "String" }, expected: "from key" },
  fullKey: { declared: { type: "String" }, expected: "from project:key" },
  plainButSecret: { declared: { type: "String", secret: true }, expected: "plain" },
  secretValue: { declared: { type: "String" }, expected: "canary-value" },
};
const config = [
  value("plainKey", "from key"),
  value("demo:fullKey", "from project:key"),
  value("plainButSecret", "plain"),
  value("secretValue", "canary-value", { secret: true }),
];
/** Pulumi YAML marks a default as secret, but not a value that the stack has in plain text. */
const secrets = ["hidden", "secretValue"];

const declarations = Object.fromEntries(Object.entries(forms).map(([name, { declared }]) => [name, declared]));
const outputs = Object.fromEntries(Object.keys(forms).map((name) => [name, `\${${name}}`]));

describe("the field configuration of a Program", () => {
  test("passes every form on, and its users get no warning about the field", async () => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({ configuration: declarations, outputs }), { config });
    for (const [run, kind] of Object.entries({ "preview-1": "preview", "up-1": "up" } as const)) {
      await web.startRun(run, { kind });
      expect(JSON.stringify(await web.updates(run))).not.toContain(deprecated);
    }
    const found = await web.outputs("up-1");
    const read = Object.fromEntries(found.map(({ name, value: content }) => [name, content]));
    expect(read).toEqual(Object.fromEntries(Object.entries(forms).map(([name, { expected }]) => [name, expected])));
    expect(found.flatMap(({ name, secret }) => (secret ? [name] : [])).toSorted()).toEqual(secrets);
    expect(web.log).not.toContain("canary");
  });

  test.each([
    ["a missing value", { a: { type: "String" } }, "missing required configuration variable 'a'"],
    ["an unknown type", { a: { type: "Text", default: "x" } }, "unexpected configuration type 'Text'"],
    ["a default of another type", { a: { type: "Number", default: "x" } }, "type mismatch: default value of type"],
    ["neither type nor default", { a: {} }, "either 'default' or 'type' is required"],
  ])("reports %s, and not the warning", async (_, configuration, message) => {
    const web = await new TestWorkspace().start();
    await web.prepare(program({ configuration, outputs: { a: "${a}" } }));
    const result = await web.run("up-1", { kind: "up" });
    expect(result).toMatchObject({ outcome: "failed", error: { class: "programError" } });
    expect(result.error?.message).toContain(message);
    expect(result.error?.lines.join("\n")).not.toContain(deprecated);
  });

  test("does not prevent a destroy without its values", async () => {
    const web = await new TestWorkspace().start();
    const source = program({ configuration: { a: { type: "String" } }, outputs: { a: "${a}" } });
    await web.prepare(source, { config: [value("a", "x")] });
    expect(await web.run("up-1", { kind: "up" })).toMatchObject({ outcome: "succeeded" });
    await web.prepare(source);
    expect(await web.run("destroy-1", { kind: "destroy" })).toMatchObject({ outcome: "succeeded" });
  });
});

test("the warning is kept for a project that its owner can change", async () => {
  const web = await new TestWorkspace().start();
  const dir = mkdtempSync(join(web.root, "project-"));
  const project = { name: "demo", runtime: "yaml", configuration: { a: { type: "String", default: "x" } } };
  writeFileSync(join(dir, "Pulumi.yaml"), JSON.stringify(project));
  await web.prepare({ kind: "local", dir });
  await web.startRun("preview-1", { kind: "preview" });
  expect(JSON.stringify(await web.updates("preview-1"))).toContain(deprecated);
});
