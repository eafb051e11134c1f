import { describe, expect, test } from "bun:test";

import { customResourceDefinitions, kindDefinitions } from "./all.ts";
import { rootSchema } from "./definition.ts";
import type { StructuralSchema } from "./structural.ts";

function* nodes(path: string, schema: StructuralSchema): Iterable<[string, StructuralSchema]> {
  yield [path, schema];
  if (schema.items) yield* nodes(`${path}[]`, schema.items);
  if (schema.additionalProperties) yield* nodes(`${path}.*`, schema.additionalProperties);
  for (const [name, child] of Object.entries(schema.properties ?? {})) yield* nodes(`${path}.${name}`, child);
}

/** Strings in lists and maps need no description of their own, and Kubernetes describes `metadata`. */
function isDescribedElsewhere(path: string, schema: StructuralSchema): boolean {
  const isEntry = path.endsWith("[]") || path.endsWith(".*");
  return path.split(".").length === 2 && path.endsWith(".metadata") ? true : isEntry && schema.type === "string";
}

for (const definition of kindDefinitions) {
  describe(definition.kind, () => {
    const all = [...nodes(definition.kind, rootSchema(definition))];

    test("describes every field in a sentence", () => {
      const bad = all.filter(
        ([path, schema]) => !isDescribedElsewhere(path, schema) && !/^[A-Z].*\.$/s.test(schema.description ?? ""),
      );
      expect(bad.map(([path]) => path)).toEqual([]);
    });

    test("has rules whose messages contain the problem and the fix", () => {
      const messages = all
        .flatMap(([, schema]) => schema["x-kubernetes-validations"] ?? [])
        .map(({ message }) => message);
      expect(messages.filter((message) => !message.includes("; "))).toEqual([]);
    });
  });
}

test("every CRD is small enough for client-side apply, which stores it in an annotation", () => {
  for (const crd of customResourceDefinitions()) {
    expect(Buffer.byteLength(JSON.stringify(crd))).toBeLessThan(256 * 1024);
  }
});

test("the kinds share a category, and each has a short name", () => {
  const names = customResourceDefinitions().map(({ spec }) => [spec.names["kind"], spec.names["shortNames"]]);
  expect(names).toEqual([
    ["Stack", ["stk"]],
    ["Program", ["prog"]],
    ["Workspace", ["wks"]],
    ["Update", ["upd"]],
    ["Approval", ["appr"]],
    ["UpdateRecord", ["updrec"]],
    ["WorkspaceClass", ["wksclass"]],
    ["Receiver", ["recv"]],
    ["Notification", ["ntfy"]],
  ]);
  for (const { spec } of customResourceDefinitions()) expect(spec.names["categories"]).toEqual(["pulumi"]);
});
