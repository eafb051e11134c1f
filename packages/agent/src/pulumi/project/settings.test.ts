import { describe, expect, test } from "bun:test";
import { parse } from "yaml";
import { parseConfigKey } from "./config-key.ts";
import {
  chooseKeys,
  readCiphertext,
  readStackKeys,
  renderSettings,
  type SettingsLayer,
  type SettingValue,
} from "./settings.ts";

const empty: SettingsLayer = { project: "demo", keys: {}, settings: [], environments: [] };

function setting(key: string, value: unknown, path = false) {
  const parsed = parseConfigKey(key, "demo", path);
  if (!parsed.ok) throw new Error(parsed.failure.message);
  const settingValue: SettingValue = { kind: "plain", value };
  return { key: parsed.value, value: settingValue };
}

function render(base: string | undefined, layer: Partial<SettingsLayer>): unknown {
  const text = renderSettings(base, { ...empty, ...layer });
  return text.ok ? parse(text.value) : text.failure.message;
}

describe("configuration", () => {
  test("supports every kind of value", () => {
    const settings = [
      setting("s", "text"),
      setting("aws:region", "eu-west-1"),
      setting("legacy:config:x", "1"),
      setting("n", 5),
      setting("f", 1.5),
      setting("b", true),
      setting("digits", "007"),
      setting("yes", "yes"),
      setting("o", { a: [1, null, { b: "c" }], "key: odd": "x: y" }),
      setting("lines", "a\nb\n"),
      setting("long", "x ".repeat(300)),
      setting("empty", ""),
    ];
    expect(render(undefined, { settings })).toEqual({
      config: {
        "demo:s": "text",
        "aws:region": "eu-west-1",
        "legacy:x": "1",
        "demo:n": 5,
        "demo:f": 1.5,
        "demo:b": true,
        "demo:digits": "007",
        "demo:yes": "yes",
        "demo:o": { a: [1, null, { b: "c" }], "key: odd": "x: y" },
        "demo:lines": "a\nb\n",
        "demo:long": "x ".repeat(300),
        "demo:empty": "",
      },
    });
  });

  test("supports paths like the CLI", () => {
    const settings = [
      setting("parent.nested", "value", true),
      setting("parent.other", "true", true),
      setting("parent.count", "12", true),
      setting("parent.code", "012", true),
      setting("names[0]", "a", true),
      setting("names[1]", "b", true),
      setting('["root.name"]["nested.name"]', "x", true),
      setting("aws:tags.team", "web", true),
      setting("top", "12", true),
    ];
    expect(render(undefined, { settings })).toEqual({
      config: {
        "demo:parent": { nested: "value", other: true, count: 12, code: "012" },
        "demo:names": ["a", "b"],
        "demo:root.name": { "nested.name": "x" },
        "aws:tags": { team: "web" },
        "demo:top": "12",
      },
    });
  });

  test("is merged with the repository's file, whose other lines stay unchanged", () => {
    const base =
      "# ours\nencryptionsalt: v1:abc\nconfig:\n  demo:a: old # why\n  demo:keep: 0x10\n  demo:secret:\n    secure: v1:cipher\n  other:on: yes\n";
    const text = renderSettings(base, { ...empty, settings: [setting("a", "new"), setting("z", 1)] });
    expect(text.ok && text.value).toBe(
      '# ours\nencryptionsalt: v1:abc\nconfig:\n  demo:a: "new"\n  demo:keep: 0x10\n  demo:secret:\n    secure: v1:cipher\n  other:on: yes\n  demo:z: 1\n',
    );
  });

  test("replaces a key in its old form", () => {
    expect(render("config:\n  demo:config:a: old\n", { settings: [setting("a", "new")] })).toEqual({
      config: { "demo:config:a": "new" },
    });
  });

  test("has secrets as ciphertext", () => {
    const value: SettingValue = { kind: "secure", ciphertext: "v1:x" };
    const settings = [
      { ...setting("token", ""), value },
      { ...setting("db.password", "", true), value },
    ];
    expect(render(undefined, { settings })).toEqual({
      config: { "demo:token": { secure: "v1:x" }, "demo:db": { password: { secure: "v1:x" } } },
    });
  });
});

describe("invalid configuration", () => {
  const invalid: Record<string, { base?: string; settings: ReturnType<typeof setting>[]; message: RegExp }> = {
    "a map that looks like a secret": { settings: [setting("a", { secure: "x" })], message: /reserved/ },
    "a nested map that looks like a secret": {
      settings: [setting("a", [{ b: { secure: "x" } }])],
      message: /reserved/,
    },
    "a path that looks like a secret": { settings: [setting("a.secure", "x", true)], message: /reserved/ },
    "a list with a name": { settings: [setting("a", [1]), setting("a.b", "x", true)], message: /must be a number/ },
    "a map with a number": {
      settings: [setting("a", { b: 1 }), setting("a[0]", "x", true)],
      message: /must be a name/,
    },
    "a list with a hole": { settings: [setting("a", [1]), setting("a[5]", "x", true)], message: /beyond the end/ },
    "a path through a string": {
      settings: [setting("a", { b: "c" }), setting("a.b.d", "x", true)],
      message: /not a (YAML )?map/,
    },
    "a settings file that is a list": { base: "- a\n", settings: [setting("a", 1)], message: /not a (YAML )?map/ },
    "a settings file that is not YAML": { base: "a: [1\nb: 2", settings: [setting("a", 1)], message: /not valid YAML/ },
    "a config that is a string": { base: "config: hello\n", settings: [setting("a", 1)], message: /not a (YAML )?map/ },
  };
  for (const [name, { base, settings, message }] of Object.entries(invalid)) {
    test(name, () => expect(String(render(base, { settings }))).toMatch(message));
  }

  test("values that are nested too deeply", () => {
    let deep: unknown = 1;
    for (let level = 0; level < 200; level += 1) deep = [deep];
    expect(String(render(undefined, { settings: [setting("a", deep)] }))).toMatch(/too deeply/);
  });
});

describe("keys", () => {
  for (const key of ["", ":", "a:", "a:b:c", "a:b:c:d", "a::b"]) {
    test(`${JSON.stringify(key)} is not a key`, () => expect(parseConfigKey(key, "demo", false).ok).toBe(false));
  }
  for (const path of ["", ".a", "a.", "a..b", "a[", "a[x]", 'a["b', "a.[0]", "[0]", 'a["b"]c']) {
    test(`${JSON.stringify(path)} is not a path`, () => expect(parseConfigKey(path, "demo", true).ok).toBe(false));
  }
});

describe("environments", () => {
  test("are added after those of the repository, once each", () => {
    expect(render("environment:\n  - base\n", { environments: ["base", "prod", "prod"] })).toEqual({
      environment: ["base", "prod"],
    });
    expect(render(undefined, { environments: ["prod"] })).toEqual({ environment: ["prod"] });
  });

  test("become imports of an inline environment", () => {
    const base = "environment:\n  imports:\n    - base\n  values:\n    a: 1\n";
    expect(render(base, { environments: ["prod"] })).toEqual({
      environment: { imports: ["base", "prod"], values: { a: 1 } },
    });
    expect(render("environment:\n  values:\n    a: 1\n", { environments: ["prod"] })).toEqual({
      environment: { values: { a: 1 }, imports: ["prod"] },
    });
  });
});

describe("the stack's keys", () => {
  test("of the repository take precedence", () => {
    expect(chooseKeys({ encryptionsalt: "repo" }, { encryptionsalt: "known" })).toEqual({ encryptionsalt: "repo" });
    expect(chooseKeys({}, { encryptionsalt: "known" })).toEqual({ encryptionsalt: "known" });
    const kms = { secretsprovider: "awskms://a" };
    expect(chooseKeys(kms, { secretsprovider: "awskms://a", encryptedkey: "k" })).toEqual({
      ...kms,
      encryptedkey: "k",
    });
    expect(chooseKeys(kms, { encryptionsalt: "other" })).toEqual(kms);
  });

  test("are written and read", () => {
    const keys = { secretsprovider: "passphrase", encryptionsalt: "v1:a=:b" };
    const text = renderSettings(undefined, { ...empty, keys });
    expect(text.ok && readStackKeys(text.value)).toEqual(keys);
    expect(readStackKeys("not: [yaml")).toEqual({});
    expect(readCiphertext('config:\n  agent:value:\n    secure: "v1:x"\n', "agent:value")).toBe("v1:x");
  });
});

test.each([
  ["has no anchor", "config:\n  demo:a: *missing\n"],
  ["refers to a value that is replaced", "config:\n  demo:s: &shared x\n  demo:t: *shared\n"],
])("an alias that %s is reported", (_, base) => {
  expect(render(base, { settings: [setting("s", "text")] })).toContain("write the value out instead of the alias");
});
