/** The benchmark is for every operator of this API: its objects have no field that the Go operator does not know. */
import { readFileSync } from "node:fs";

import { describe, expect, test } from "bun:test";

import { programObject, stackObject } from "./stack.ts";

const facts = readFileSync(
  new URL("../../packages/api/src/crd/testdata/reference-fields.txt", import.meta.url),
  "utf8",
);

/** The fields of a kind, with `*` for any key, that have fields of their own listed or take anything. */
function fieldsOf(kind: string): Set<string> {
  const section = facts.split(/^## /m).find((text) => text.startsWith(`${kind} `)) ?? "";
  return new Set(section.split("\n").flatMap((line) => /^([a-z]\S*): /.exec(line)?.[1] ?? []));
}

/** Paths of an object that the kind does not know. What is below a field without listed fields is that field's own. */
function unknownIn(value: unknown, known: ReadonlySet<string>, path: string): string[] {
  if (!known.has(path)) return [path];
  const isOpen = ![...known].some((field) => field.startsWith(`${path}.`));
  if (isOpen || typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, each]) => {
    const named = `${path}.${key}`;
    return unknownIn(each, known, known.has(named) ? named : known.has(`${path}.*`) ? `${path}.*` : named);
  });
}

const inFields = (kind: string, top: string, value: object): string[] => {
  const known = fieldsOf(kind).add(top);
  return unknownIn(value, known, top);
};

describe("the Go operator knows every field", () => {
  const wish = { namespace: "bench", name: "a", source: { programRef: { name: "a" } } };

  test("of a Stack with all that a scenario may ask for", () => {
    const stack = stackObject({
      ...wish,
      value: "red",
      destroyOnFinalize: true,
      reclaim: "Delete",
      path: "/bin",
      requests: { cpu: "1m", memory: "1Mi" },
    });
    expect(inFields("Stack", "spec", stack.spec)).toEqual([]);
  });

  test("of a Stack that follows a branch", () => {
    const source = { projectRepo: "https://example.com/a.git", branch: "main", resyncFrequencySeconds: 60 };
    expect(inFields("Stack", "spec", stackObject({ ...wish, source }).spec)).toEqual([]);
  });

  test("of a Program", () => {
    expect(inFields("Program", "program", programObject({ ...wish, text: "one" }).program)).toEqual([]);
  });

  test("and this test would see one that it does not know", () => {
    const { spec } = stackObject({ ...wish, workspace: { idleTimeoutSeconds: 5 } });
    expect(inFields("Stack", "spec", spec)).toEqual(["spec.workspaceTemplate.spec.idleTimeoutSeconds"]);
  });
});
