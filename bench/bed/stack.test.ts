/** The benchmark works with every operator of this API: its objects only have fields that the Go operator knows. */
import { readFileSync } from "node:fs";

import { describe, expect, test } from "bun:test";

import { programObject, stackObject } from "./stack.ts";

const facts = readFileSync(
  new URL("../../packages/api/src/crd/testdata/reference-fields.txt", import.meta.url),
  "utf8",
);

/** The field paths of a kind, with `*` for any key. */
function kindFields(kind: string): Set<string> {
  const section = facts.split(/^## /m).find((text) => text.startsWith(`${kind} `)) ?? "";
  return new Set(section.split("\n").flatMap((line) => /^([a-z]\S*): /.exec(line)?.[1] ?? []));
}

/** Paths of an object that the kind does not have. A field without listed subfields accepts anything. */
function unknownPaths(value: unknown, known: ReadonlySet<string>, path: string): string[] {
  if (!known.has(path)) return [path];
  const isOpen = ![...known].some((field) => field.startsWith(`${path}.`));
  if (isOpen || typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => {
    const named = `${path}.${key}`;
    return unknownPaths(each, known, known.has(named) ? named : known.has(`${path}.*`) ? `${path}.*` : named);
  });
}

const unknownFields = (kind: string, top: string, value: object): string[] => {
  const known = kindFields(kind).add(top);
  return unknownPaths(value, known, top);
};

describe("the Go operator knows every field", () => {
  const settings = { namespace: "bench", name: "a", source: { programRef: { name: "a" } } };

  test("of a Stack with everything that a scenario may set", () => {
    const stack = stackObject({
      ...settings,
      value: "red",
      destroyOnFinalize: true,
      reclaim: "Delete",
      path: "/bin",
      requests: { cpu: "1m", memory: "1Mi" },
    });
    expect(unknownFields("Stack", "spec", stack.spec)).toEqual([]);
  });

  test("of a Stack that follows a branch", () => {
    const source = { projectRepo: "https://example.com/a.git", branch: "main", resyncFrequencySeconds: 60 };
    expect(unknownFields("Stack", "spec", stackObject({ ...settings, source }).spec)).toEqual([]);
  });

  test("of a Program", () => {
    expect(unknownFields("Program", "program", programObject({ ...settings, text: "one" }).program)).toEqual([]);
  });

  test("and this test detects an unknown field", () => {
    const { spec } = stackObject({ ...settings, workspace: { idleTimeoutSeconds: 5 } });
    expect(unknownFields("Stack", "spec", spec)).toEqual(["spec.workspaceTemplate.spec.idleTimeoutSeconds"]);
  });
});
