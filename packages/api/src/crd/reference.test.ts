/**
 * The API accepts everything that the Go operator accepts. `testdata/reference-fields.txt` lists the Go operator's fields: in
 * a path, `*` is any key and `[]` any entry; the constraints follow the type.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";

import { kindDefinitions } from "./all.ts";
import { buildCrd, rootSchema, type KindDefinition, type PrinterColumn } from "./definition.ts";
import type { StructuralSchema } from "./structural.ts";

interface ReferenceField {
  readonly path: string;
  readonly type: string;
  readonly required: readonly string[];
  readonly enum: readonly string[] | undefined;
  readonly default: string | undefined;
  readonly maxLength: string | undefined;
  readonly listType: string | undefined;
}

interface ReferenceKind {
  readonly kind: string;
  readonly version: string;
  readonly columns: Pick<Required<PrinterColumn>, "name" | "type" | "jsonPath">[];
  readonly fields: ReferenceField[];
}

const facts = readFileSync(new URL("testdata/reference-fields.txt", import.meta.url), "utf8");

function parseKind(section: string): ReferenceKind {
  const [heading = "", ...lines] = section.trim().split("\n");
  const [, kind = "", version = ""] = /^(\w+) (\S+) /.exec(heading) ?? [];
  const columns = lines.flatMap((line) => parseColumn(line) ?? []);
  const fields = lines.flatMap((line) => parseField(line) ?? []);
  return { kind, version, columns, fields };
}

function parseColumn(line: string): ReferenceKind["columns"][number] | undefined {
  const [, name, type, jsonPath] = /^column (.+) (string|date) (\.\S+) (?:wide)?$/.exec(line) ?? [];
  return name && jsonPath ? { name, type: type === "date" ? "date" : "string", jsonPath } : undefined;
}

function parseField(line: string): ReferenceField | undefined {
  const [, path, rest] = /^([a-z]\S*): (.+)$/.exec(line) ?? [];
  if (!path || !rest) return undefined;
  const fact = (pattern: RegExp): string | undefined => pattern.exec(rest)?.[1];
  return {
    path,
    type: fact(/^(\S+)/) ?? "",
    required: fact(/required=(\S+)/)?.split(",") ?? [],
    enum: fact(/enum=\['([^\]]*)'\]/)?.split("', '"),
    default: fact(/ default=(\S*)/),
    maxLength: fact(/maxLength=(\d+)/),
    listType: fact(/list=(\w+)/),
  };
}

const kinds = facts.split("\n## ").map((section) => parseKind(section.replace(/^## /, "")));

function definitionOf(kind: string): KindDefinition {
  const found = kindDefinitions.find((definition) => definition.kind === kind);
  if (!found) throw new Error(`no kind ${kind}`);
  return found;
}

function schemaAt(root: StructuralSchema, path: string): StructuralSchema | undefined {
  const steps = path.replaceAll("[]", ".[]").split(".");
  return steps.reduce<StructuralSchema | undefined>((schema, step) => {
    if (step === "[]") return schema?.items;
    return step === "*" ? schema?.additionalProperties : schema?.properties?.[step];
  }, root);
}

/** A field that preserves unknown content accepts any type. */
const preservesUnknown = (schema: StructuralSchema): boolean => schema["x-kubernetes-preserve-unknown-fields"] === true;

function typeOf(schema: StructuralSchema): string {
  return schema["x-kubernetes-int-or-string"] ? "int-or-string" : (schema.type ?? "any");
}

/** Our constraints on a field that the Go operator does not have. */
function extraConstraints(field: ReferenceField, schema: StructuralSchema): string[] {
  const required = (schema.required ?? []).filter((name) => !field.required.includes(name));
  return [
    ...(typeOf(schema) === field.type || preservesUnknown(schema) ? [] : [`type ${typeOf(schema)}`]),
    ...required.map((name) => `required ${name}`),
    ...extraChoices(field, schema),
    ...extraBounds(field, schema),
  ];
}

function extraChoices(field: ReferenceField, { enum: ours }: StructuralSchema): string[] {
  if (!Array.isArray(ours)) return [];
  if (!field.enum) return ["enum"];
  return field.enum.filter((value) => !ours.includes(value)).map((value) => `enum without ${value}`);
}

function extraBounds(field: ReferenceField, schema: StructuralSchema): string[] {
  return ["maxLength", "maxItems", "maxProperties", "maximum", "pattern"].flatMap((bound) => {
    const ours = typeof schema[bound] === "number" ? `${schema[bound]}` : schema[bound];
    if (typeof ours !== "string") return [];
    const same = bound === "maxLength" ? field.maxLength === ours : facts.includes(`${bound}=${ours}`);
    return same ? [] : [`${bound} ${ours}`];
  });
}

for (const reference of kinds) {
  describe(`${reference.kind} ${reference.version}`, () => {
    const definition = definitionOf(reference.kind);
    const root = rootSchema(definition);
    const fields = reference.fields.length > 0 ? reference.fields : (kinds[0]?.fields ?? []);

    test("is served, and one version is the storage version", () => {
      const versions = buildCrd(definition).spec.versions.map(({ name }) => `${definition.group}/${name}`);
      expect(versions).toContain(reference.version);
      expect(buildCrd(definition).spec.versions.filter(({ storage }) => storage)).toHaveLength(1);
    });

    test("has every field of the Go operator", () => {
      expect(fields.filter(({ path }) => !schemaAt(root, path)).map(({ path }) => path)).toEqual([]);
    });

    test("has every default and list type of the Go operator", () => {
      for (const field of fields) {
        const schema = schemaAt(root, field.path) ?? {};
        if (field.default !== undefined) {
          expect([field.path, String(schema["default"]).toLowerCase()]).toEqual([
            field.path,
            field.default.toLowerCase(),
          ]);
        }
        if (field.listType)
          expect([field.path, schema["x-kubernetes-list-type"]]).toEqual([field.path, field.listType]);
      }
    });

    test("has every column of the Go operator", () => {
      const ours = definition.columns.map(({ name, type, jsonPath }) => ({ name, type, jsonPath }));
      for (const column of reference.columns) expect(ours).toContainEqual(column);
    });
  });
}

test("constrains fields no more than the Go operator, except for limits that CEL rules require", () => {
  const constraints = kinds.flatMap(({ kind, fields }) => {
    const root = rootSchema(definitionOf(kind));
    return fields.flatMap((field) =>
      extraConstraints(field, schemaAt(root, field.path) ?? {}).map(
        (constraint) => `${kind} ${field.path}: ${constraint}`,
      ),
    );
  });
  const references = /^Stack spec\.(envRefs|secretsRef)\.\*\.type: maxLength 64$/;
  const credentials = /^Stack spec\.gitAuth\..+\.type: maxLength 64$/;
  const unexpected = constraints.filter((each) => !references.test(each) && !credentials.test(each));
  expect(unexpected.toSorted()).toEqual([
    "Stack spec.prerequisites: maxItems 1000",
    "Stack spec.updateTemplate.spec.ttlAfterCompleted: maxLength 128",
    "Update spec.replace: maxItems 10000",
    "Update spec.target: maxItems 10000",
    "Update spec.ttlAfterCompleted: maxLength 128",
  ]);
});
