import { describe, expect, test } from "bun:test";
import { Redactor } from "../system/redact.ts";
import { changeOf, isDefaultProvider, plannedChanges, unknownInputs, withoutOutputs } from "./plan-file.ts";
import { summarize } from "./summary.ts";

const unknown = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";
const urn = (type: string, name: string): string => `urn:pulumi:dev::demo::${type}::${name}`;
const stack = urn("pulumi:pulumi:Stack", "demo-dev");
const file = (resourcePlans: object): unknown => ({ manifest: { version: "v3" }, resourcePlans });

describe("what the steps of a resource do", () => {
  const cases: readonly (readonly [string, readonly string[], string | undefined])[] = [
    ["nothing", ["same"], undefined],
    ["a read", ["read"], undefined],
    ["no steps", [], undefined],
    ["a creation", ["create"], "create"],
    ["an update", ["update"], "update"],
    ["a deletion", ["delete"], "delete"],
    ["a replacement", ["create-replacement", "replace", "delete-replaced"], "replace"],
    ["a replacement that deletes first", ["delete-replaced", "replace", "create-replacement"], "replace"],
    ["the end of an earlier replacement", ["delete-replaced"], "replace"],
    ["a resource that is no longer managed", ["discard"], "delete"],
    ["an import", ["import"], "other"],
  ];
  for (const [name, steps, expected] of cases) test(name, () => expect(changeOf(steps)).toBe(expected as never));
});

describe("a default provider", () => {
  const cases: readonly (readonly [string, boolean])[] = [
    ["default", true],
    ["default_6_0_0", true],
    ["default_4_1_0_alpha_123", true],
    ["default_1_2_3_https_/example.com/plugins", true],
    ["default_https_/example.com/plugins", true],
    ["default-eu", false],
    ["default_eu", false],
    ["default_2", false],
    ["defaults", false],
    ["east", false],
  ];
  for (const [name, expected] of cases) {
    test(`${expected ? "may have" : "does not have"} the name ${name}`, () => {
      expect(isDefaultProvider(urn("pulumi:providers:aws", name))).toBe(expected);
    });
  }

  test("is not another resource with that name", () => {
    expect(isDefaultProvider(urn("aws:s3/bucket:Bucket", "default"))).toBe(false);
  });

  test("is no change of a plan, unless the program has created it: then it has a parent", () => {
    const provider = urn("pulumi:providers:aws", "default");
    expect(plannedChanges(file({ [provider]: { goal: { name: "default" }, steps: ["create"] } }))).toEqual([]);
    const explicit = { goal: { name: "default", parent: stack }, steps: ["update"] };
    expect(plannedChanges(file({ [provider]: explicit }))).toEqual([{ op: "update", urn: provider }]);
  });
});

test("the values of the stack's outputs become unknown, and no others", () => {
  const bucket = { goal: { outputDiff: { adds: { arn: "arn" } } }, steps: ["create"] };
  const outputDiff = { adds: { url: "https://x" }, updates: { token: { ciphertext: "v1" } }, deletes: ["old"] };
  const before = file({
    [stack]: { goal: { name: "demo-dev", outputDiff }, state: { url: "https://x" } },
    [urn("a:b:C", "c")]: bucket,
  });
  expect(withoutOutputs(before)).toEqual(
    file({
      [stack]: {
        goal: {
          name: "demo-dev",
          outputDiff: { adds: { url: unknown }, updates: { token: unknown }, deletes: ["old"] },
        },
        state: { url: "https://x" },
      },
      [urn("a:b:C", "c")]: bucket,
    }),
  );
  expect(withoutOutputs(file({ [stack]: { goal: null, steps: ["delete"] } }))).toEqual(
    file({ [stack]: { goal: null, steps: ["delete"] } }),
  );
});

test("inputs are unknown if a part of their value is, in resources that change", () => {
  const inputDiff = { adds: { a: unknown, b: ["x", { c: unknown }], d: "known" }, updates: { e: unknown } };
  expect(
    unknownInputs(
      file({
        [urn("a:b:C", "new")]: { goal: { inputDiff }, steps: ["create"] },
        [urn("a:b:C", "same")]: { goal: { inputDiff }, steps: ["same"] },
      }),
    ),
  ).toBe(3);
});

describe("the summary", () => {
  const redactor = new Redactor();
  redactor.add("canary-name");
  const of = (resourcePlans: object) =>
    summarize({ digest: "sha256:1", changes: plannedChanges(file(resourcePlans)), unknownInputs: 0 }, (text) =>
      redactor.clean(text),
    );

  test("has replacements and deletions first, and neither default providers nor unchanged resources", () => {
    expect(
      of({
        [urn("a:b:C", "updated")]: { steps: ["update"] },
        [urn("a:b:C", "created")]: { steps: ["create"] },
        [urn("a:b:C", "same")]: { steps: ["same"] },
        [urn("a:b:C", "deleted")]: { steps: ["delete"] },
        [urn("a:b:C", "canary-name")]: { steps: ["create-replacement", "replace", "delete-replaced"] },
        [urn("pulumi:providers:a", "default")]: { steps: ["delete"] },
      }),
    ).toEqual({
      digest: "sha256:1",
      changes: true,
      destructive: true,
      unknownInputs: 0,
      summary: [
        "1 to replace, 1 to delete, 1 to create, 1 to update",
        "replace  a:b:C [secret]",
        "delete   a:b:C deleted",
        "create   a:b:C created",
        "update   a:b:C updated",
      ].join("\n"),
    });
  });

  const many = (count: number, prefix: string, steps: readonly string[]): object =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [urn("a:b:C", `${prefix}${index}`), { steps }]));
  const replaced = ["create-replacement", "replace", "delete-replaced"];

  test("is short, even if much changes", () => {
    const lines = of(many(500, "c", ["create"])).summary.split("\n");
    expect(lines).toHaveLength(52);
    expect(lines[0]).toBe("500 to create");
    expect(lines.at(-1)).toBe("… and 450 more: 450 to create");
  });

  test("fits into the status, even if all names are long", () => {
    const { summary } = of(many(500, "x".repeat(500), ["create"]));
    expect(summary.length).toBeLessThan(4096);
    expect(summary.split("\n")[1]?.length).toBe(240);
    expect(summary).toMatch(/\n… and 485 more: 485 to create$/);
  });

  test("shows deletions, however many resources are replaced", () => {
    const lines = of({
      ...many(60, "r", replaced),
      ...many(3, "d", ["delete"]),
      ...many(9, "c", ["create"]),
    }).summary.split("\n");
    expect(lines[0]).toBe("60 to replace, 3 to delete, 9 to create");
    expect(lines.slice(48, 51)).toEqual(["delete   a:b:C d0", "delete   a:b:C d1", "delete   a:b:C d2"]);
    expect(lines.at(-1)).toBe("… and 22 more: 13 to replace, 9 to create");
  });

  test("counts the deletions that it omits", () => {
    const { summary } = of({ ...many(60, "r", replaced), ...many(60, "d", ["delete"]) });
    expect(summary).toStartWith("60 to replace, 60 to delete\n");
    expect(summary).toEndWith("\n… and 70 more: 35 to replace, 35 to delete");
  });

  test("has one line for each resource, whatever its name contains", () => {
    const name = "a\ndelete   a:b:C b\r\u0007\u2028\u202egnp.\u2069\u200b\u0085\u00a0\u3164\u2800\ufe0fé🙂";
    expect(of({ [urn("a:b:C\n", name)]: { steps: ["create"] } }).summary).toBe(
      "1 to create\ncreate   a:b:C\\u{a} " +
        "a\\u{a}delete   a:b:C b\\u{d}\\u{7}\\u{2028}\\u{202e}gnp.\\u{2069}\\u{200b}\\u{85}\\u{a0}\\u{3164}\\u{2800}\\u{fe0f}é🙂",
    );
  });

  test("recognizes a secret that has several lines", () => {
    redactor.add("canary-first\ncanary-second");
    const { summary } = of({ [urn("a:b:C", "x-canary-first\ncanary-second")]: { steps: ["create"] } });
    expect(summary).toBe("1 to create\ncreate   a:b:C x-[secret]");
  });

  test("of an update without changes is empty", () => {
    expect(of({ [stack]: { steps: ["same"] } })).toMatchObject({ changes: false, destructive: false, summary: "" });
    expect(of({ [urn("a:b:C", "c")]: { steps: ["update"] } })).toMatchObject({ changes: true, destructive: false });
  });
});
