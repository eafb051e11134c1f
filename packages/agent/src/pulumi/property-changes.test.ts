import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { maxEventValueChars, RunEvent, type PropertyChange, type ResourceEvent } from "@pko/records";
import { checkValue } from "@pko/rpc";
import { Redactor } from "../system/redact.ts";
import { parseEngineEvent } from "./engine-events.ts";
import { reportedChanges } from "./property-changes.ts";

const redactor = new Redactor();
const clean = (text: string) => redactor.clean(text);

/** Events of `pulumi up --event-log`, with the CLI of the tests. */
function recorded(name: string): ResourceEvent[] {
  const lines = readFileSync(join(import.meta.dir, "testdata", name), "utf8")
    .trimEnd()
    .split("\n");
  return lines.flatMap((line) => {
    const event = parseEngineEvent(line, clean)?.event;
    return event?.kind === "resource" ? [event] : [];
  });
}

const stash = (name: string): string => `urn:pulumi:dev::demo::pulumi:index:Stash::${name}`;
const stack = "urn:pulumi:dev::demo::pulumi:pulumi:Stack::demo-dev";
const provider = "urn:pulumi:dev::demo::pulumi:providers:pulumi::default";

describe("events of the real engine", () => {
  const events = recorded("update.ndjson");
  const find = (op: string, phase: ResourceEvent["phase"] = "finished"): ResourceEvent | undefined =>
    events.find((event) => event.op === op && event.phase === phase && !event.resourceType.startsWith("pulumi:pro"));

  test("of an update have the changed properties with their values, and no secrets", () => {
    expect(find("update")).toEqual({
      kind: "resource",
      phase: "finished",
      op: "update",
      urn: stash("a"),
      resourceType: "pulumi:index:Stash",
      parent: stack,
      provider,
      id: "3178c9a6-5a21-4a0a-856c-e36ce772fc37",
      changes: [
        { path: "input.list[1]", kind: "update", old: "2", new: "3" },
        { path: "input.list[2]", kind: "add", new: "4" },
        { path: "input.x", kind: "update", old: "1", new: "2" },
      ],
    });
  });

  test("of a create and a delete have the properties of the resource", () => {
    expect(find("create")).toMatchObject({ urn: stash("c"), changes: [{ path: "input", kind: "add", new: "5" }] });
    expect(find("delete")).toMatchObject({
      parent: stash("a"),
      changes: [{ path: "input", kind: "delete", old: '{"list":[1,2],"tok":{},"x":1}' }],
    });
  });

  test("of the start of a step are small, and there is none for a resource that stays the same", () => {
    expect(find("update", "started")).toEqual({
      kind: "resource",
      phase: "started",
      op: "update",
      urn: stash("a"),
      resourceType: "pulumi:index:Stash",
      parent: stack,
    });
    expect(events.filter(({ op }) => op === "same").map(({ phase }) => phase)).toEqual(["finished", "finished"]);
    expect(events.filter(({ op, changes }) => op === "same" && changes)).toEqual([]);
  });

  test("of a replacement have the reason in one of its steps", () => {
    const steps = recorded("replace.ndjson").filter(({ phase }) => phase === "finished");
    expect(steps.map(({ op, replaceKeys }) => [op, replaceKeys])).toEqual([
      ["create-replacement", undefined],
      ["replace", ["id"]],
      ["delete-replaced", undefined],
    ]);
  });
});

const signature = "4dabf18193072939515e22adb298388d";
const secret = { [signature]: "1b47061264138c4ac30d75fd1eb44270", ciphertext: "[secret]" };
const asset = { [signature]: "c44067f5952c0a294b673a41bacd8c17", hash: "0123456789abcdef", text: "canary" };
const unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

const update = (before: object, after: object, more: object = {}) => {
  const metadata = { op: "update", old: { inputs: before }, new: { inputs: after }, detailedDiff: null, ...more };
  return reportedChanges(metadata, false, clean).changes;
};

describe("changes are", () => {
  const detailed = (diffKind: string, inputDiff = true) => ({ detailedDiff: { "a.b[0]": { diffKind, inputDiff } } });
  const [one, two] = [{ a: { b: [1] } }, { a: { b: [2] } }];
  const cases: readonly (readonly [string, ReturnType<typeof update>, PropertyChange[]])[] = [
    [
      "those that the provider reports",
      update(one, two, detailed("update-replace")),
      [{ path: "a.b[0]", kind: "update-replace", old: "1", new: "2" }],
    ],
    [
      "compared with the old outputs, if the provider did",
      update({}, two, { old: { inputs: {}, outputs: one }, ...detailed("update", false) }),
      [{ path: "a.b[0]", kind: "update", old: "1", new: "2" }],
    ],
    ["added without an old value", update(one, two, detailed("add")), [{ path: "a.b[0]", kind: "add", new: "2" }]],
    [
      "deleted without a new value",
      update(one, two, detailed("delete")),
      [{ path: "a.b[0]", kind: "delete", old: "1" }],
    ],
    [
      "found in the outputs after a refresh",
      update({}, {}, { old: { inputs: {}, outputs: { a: 1 } }, new: { inputs: {}, outputs: { a: 2 } } }),
      [{ path: "a", kind: "update", old: "1", new: "2" }],
    ],
    [
      "without a value that is not known yet",
      update({ a: 1 }, { a: unknown }),
      [{ path: "a", kind: "update", old: "1" }],
    ],
    [
      "listed even if the engine masks both values",
      update({ a: secret }, { a: secret }, { diffs: ["a"] }),
      [{ path: "a", kind: "update", old: '"[secret]"', new: '"[secret]"' }],
    ],
    [
      "files with their digests",
      update({ a: asset }, { a: "x" }),
      [{ path: "a", kind: "update", old: '"[file 0123456789ab]"', new: '"x"' }],
    ],
  ];
  for (const [name, changes, expected] of cases) test(name, () => expect(changes).toEqual(expected));

  test("not reported for steps that change nothing", () => {
    for (const op of ["same", "refresh", "read", "create-replacement", "delete-replaced", undefined]) {
      expect(reportedChanges({ op, old: { inputs: {} }, new: { inputs: { a: 1 } } }, false, clean)).toEqual({});
    }
  });

  test("reported for a replacement that failed", () => {
    const metadata = { op: "create-replacement", keys: ["a"], old: { inputs: {} }, new: { inputs: { a: 1 } } };
    expect(reportedChanges(metadata, true, clean)).toEqual({
      changes: [{ path: "a", kind: "add", new: "1" }],
      replaceKeys: ["a"],
    });
  });
});

describe("secrets in changes are masked", () => {
  const long = `canary-${"0123456789abcdef".repeat(150)}`;
  redactor.add("canary-known", long, "canary line 1\ncanary line 2");

  const cases: Record<string, unknown> = {
    "if the engine marks them": { deep: [{ ...secret, value: "canary" }] },
    "if the redactor knows them": "connect with canary-known",
    "in names of properties": { "canary-known": 1 },
    "across the limit of a value": `${"x".repeat(500)}${long}`,
    "longer than a value": long,
    "with several lines": "first\ncanary line 1\ncanary line 2",
    "in JSON in a value": JSON.stringify({ body: JSON.stringify({ key: "canary-known" }) }),
    "if their name shows it": { dbPassword: "canary", apiKey: ["canary"] },
    "in a list of variables": { env: [{ name: "DB_PASSWORD", value: "canary" }] },
    "in a file": asset,
    "in a part of a secret": { part: { ...secret, inner: "canary" } },
    "below a name that shows it": {
      credentials: { pass: "canary", list: [{ a: "canary" }] },
      secretData: { a: "canary" },
    },
    "in a kubeconfig": {
      kubeconfig: { users: [{ user: "canary" }] },
      kubeConfigRaw: "canary",
      kubeConfigs: ["canary"],
    },
    "in a Secret inside another resource": {
      objs: [{ kind: "Secret", data: { a: "canary" }, stringData: { b: "canary" } }],
    },
    "in a copy of a manifest": { "kubectl.kubernetes.io/last-applied-configuration": "canary" },
    "in a list of keys and values": [{ key: "dbPassword", value: { raw: "canary" } }],
    "in a URL": [
      "postgres://user:canary@db/shop",
      "redis://:canary@cache",
      "https://canary@git.example.com/a",
      "a://u:p@canary@h",
    ],
    "in a private key": "-----BEGIN RSA PRIVATE KEY-----\ncanary\n-----END RSA PRIVATE KEY-----",
    "in a private key that is cut": "-----BEGIN PRIVATE KEY-----\ncanary",
    "in a token": ["eyJhbGciOi.canary.canary", "Bearer canary-0123456789abcdef", `xoxb-1234567890-canary`],
    "in texts": [
      "host=db password=canary",
      "https://example.com/?access_token=canary&x=1",
      `{"password": "a\\"canary, canary"}`,
      JSON.stringify(JSON.stringify({ clientSecret: "canary canary" })),
      "apiVersion: v1\nusers:\n  - user:\n      client-key-data: canary\n      token: 'canary canary'\n      password: canary canary",
    ],
  };
  for (const [name, value] of Object.entries(cases)) {
    test(name, () => {
      const shown = JSON.stringify([
        update({ a: value }, { a: 1 }),
        update({ a: 1 }, { a: value }),
        reportedChanges({ op: "create", new: { inputs: { a: value } } }, false, clean),
        reportedChanges({ op: "delete", old: { inputs: { a: value } } }, false, clean),
      ]);
      expect(shown).not.toContain("canary");
    });
  }

  test("at a path that the provider reports", () => {
    const env = (value: string) => ({ env: [{ name: "DB_PASSWORD", value }], tls: { ...secret, key: value } });
    const detailedDiff = { "env[0].value": { diffKind: "update", inputDiff: true }, "tls.key": { diffKind: "update" } };
    const changes = update(env("canary-1"), env("canary-2"), { detailedDiff });
    expect(JSON.stringify(changes)).not.toContain("canary");
    expect(changes?.[0]).toEqual({ path: "env[0].value", kind: "update", old: '"[secret]"', new: '"[secret]"' });
  });

  test("in the data of a Secret", () => {
    for (const type of [
      "kubernetes:core/v1:Secret",
      "kubernetes:core/v1:SecretPatch",
      "azure:keyvault/secret:Secret",
    ]) {
      const inputs = {
        data: { a: "canary" },
        stringData: { passwordFile: "canary" },
        value: "canary",
        immutable: false,
      };
      const [create] = [reportedChanges({ op: "create", type, new: { inputs } }, false, clean).changes];
      expect(JSON.stringify(create)).not.toContain("canary");
      expect(create?.[0]).toEqual({ path: "data", kind: "add", new: '{"a":"[secret]"}' });
      expect(create?.at(-1)?.new).toBe("false");
      const detailedDiff = { "data.a": { diffKind: "update", inputDiff: true } };
      expect(update(inputs, inputs, { type, detailedDiff })).toEqual([
        { path: "data.a", kind: "update", old: '"[secret]"', new: '"[secret]"' },
      ]);
    }
  });

  test("but not what is only about a secret", () => {
    const spec = {
      secretName: "tls",
      tokenEnabled: true,
      secretKeyRef: { name: "db", key: "user" },
      volumes: [{ secret: { secretName: "tls", items: [{ key: "a", path: "b" }] } }],
      data: { a: "https://example.com:8080/a@b", image: "token-service:1.2" },
      kubeconfigPath: "/etc/kube",
      arn: "arn:aws:secretsmanager:eu-west-1:1:secret:db",
      credentials: { enabled: true },
    };
    expect(update({}, { spec })).toEqual([{ path: "spec", kind: "add", new: JSON.stringify(spec) }]);
  });
});

describe("an event is limited", () => {
  const event = (properties: object) => {
    const metadata = { op: "create", urn: "urn:a", type: "t", new: { inputs: properties } };
    const line = JSON.stringify({ sequence: 1, timestamp: 1, resOutputsEvent: { metadata } });
    return parseEngineEvent(line, clean)?.event as ResourceEvent;
  };
  const many = (count: number, value: unknown) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`${"long".repeat(100)}${index}`, value]));

  test("in the number of properties, and the rest is counted", () => {
    const limited = event(many(100, 1));
    expect(limited.changes).toHaveLength(64);
    expect(limited.omittedChanges).toBe(36);
    expect(checkValue(RunEvent, limited)).toMatchObject({ ok: true });
  });

  test("in the size of a value and of all values", () => {
    const limited = event(many(60, "x".repeat(10_000)));
    const values = limited.changes?.flatMap((change) => change.new ?? []) ?? [];
    expect(values[0]).toHaveLength(512);
    expect(values.join("").length).toBeLessThan(maxEventValueChars + 512);
    expect(limited.changes).toHaveLength(60);
    expect(checkValue(RunEvent, limited)).toMatchObject({ ok: true });
  });

  test("for documents and deep nesting", () => {
    const nested: unknown = Array.from({ length: 1000 }).reduce((value) => [value], 1);
    const limited = event({ document: "x".repeat(100_000), nested });
    expect(limited.changes?.[0]).toEqual({ path: "document", kind: "add", new: '"[100000 characters]"' });
    expect(checkValue(RunEvent, limited)).toMatchObject({ ok: true });
  });
});
