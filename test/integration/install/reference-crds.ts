/** CRDs with the fields of the Go operator, built from the field list of the API's tests. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

interface Schema {
  type?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  items?: Schema;
  required?: string[];
  [keyword: string]: unknown;
}

interface ReferenceCrd {
  /** For example `stacks.pulumi.com`. */
  readonly name: string;
  readonly versions: readonly object[];
}

const fieldList = readFileSync(
  fileURLToPath(new URL("../../../packages/api/src/crd/testdata/reference-fields.txt", import.meta.url)),
  "utf8",
);

export function referenceCrds(): ReferenceCrd[] {
  const sections = fieldList.split(/^## /m).filter((section) => section.trim() !== "");
  const kinds = sections.map((section) => {
    const [, kind = "", group = "", version = ""] = /^(\w+) ([\w.]+)\/(\w+) /.exec(section) ?? [];
    return { kind, group, version, schema: parseSchema(section) };
  });
  const names = new Set(kinds.map(({ kind, group }) => `${kind.toLowerCase()}s.${group}`));
  return [...names].map((name) => {
    const [first, ...others] = kinds.filter(({ kind, group }) => `${kind.toLowerCase()}s.${group}` === name);
    const versions = [first, ...others].flatMap((each) => each ?? []);
    return {
      name,
      versions: versions.map(({ version }, index) => ({
        name: version,
        served: true,
        storage: index === 0,
        subresources: { status: {} },
        // All versions have the same fields.
        schema: { openAPIV3Schema: first?.schema },
      })),
    };
  });
}

function parseSchema(section: string): Schema {
  const root: Schema = { type: "object", properties: {} };
  for (const line of section.split("\n")) {
    const [, path, field] = /^([a-z]\S*): (.+)$/.exec(line) ?? [];
    if (path !== undefined && field !== undefined) Object.assign(nodeAt(root, path), parseField(field));
  }
  return withUnknownFields(root);
}

/** The node of a path, in which `*` is any key and `[]` any item. */
function nodeAt(root: Schema, path: string): Schema {
  return path
    .replaceAll("[]", ".[]")
    .split(".")
    .reduce<Schema>((node, step) => {
      if (step === "[]") return (node.items ??= {});
      if (step === "*") return (node.additionalProperties ??= {});
      node.properties ??= {};
      return (node.properties[step] ??= {});
    }, root);
}

function parseField(field: string): Schema {
  const [type = "", ...attributes] = field.split(" ");
  const attribute = (name: string): string | undefined =>
    attributes.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
  if (type === "any") return { "x-kubernetes-preserve-unknown-fields": true };
  if (type === "int-or-string") return { "x-kubernetes-int-or-string": true };
  const required = attribute("required")?.split(",");
  const values = attribute("values");
  const items = attribute("items");
  return {
    type,
    ...(required && { required }),
    ...(values !== undefined && { additionalProperties: parseField(values) }),
    ...(items !== undefined && { items: parseField(items) }),
  };
}

/** Allows any content where the list has no details, for example in pod templates. */
function withUnknownFields(schema: Schema): Schema {
  const { properties, additionalProperties, items } = schema;
  if (schema.type === "object" && !properties && !additionalProperties) {
    return { ...schema, "x-kubernetes-preserve-unknown-fields": true };
  }
  if (schema.type === "array" && !items) return { ...schema, items: { "x-kubernetes-preserve-unknown-fields": true } };
  return {
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, withUnknownFields(each)])),
    }),
    ...(additionalProperties && { additionalProperties: withUnknownFields(additionalProperties) }),
    ...(items && { items: withUnknownFields(items) }),
  };
}
