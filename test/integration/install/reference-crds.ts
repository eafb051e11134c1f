/** Definitions with the Go operator's fields, made from the list of them that the API's tests hold as facts. */
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

interface Definition {
  /** Such as `stacks.pulumi.com`. */
  readonly name: string;
  readonly versions: readonly object[];
}

const facts = readFileSync(
  fileURLToPath(new URL("../../../packages/api/src/crd/testdata/reference-fields.txt", import.meta.url)),
  "utf8",
);

export function referenceDefinitions(): Definition[] {
  const sections = facts.split(/^## /m).filter((section) => section.trim() !== "");
  const kinds = sections.map((section) => {
    const [, kind = "", group = "", version = ""] = /^(\w+) ([\w.]+)\/(\w+) /.exec(section) ?? [];
    return { kind, group, version, schema: schemaOf(section) };
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
        // A later version has the same fields.
        schema: { openAPIV3Schema: first?.schema },
      })),
    };
  });
}

function schemaOf(section: string): Schema {
  const root: Schema = { type: "object", properties: {} };
  for (const line of section.split("\n")) {
    const [, path, told] = /^([a-z]\S*): (.+)$/.exec(line) ?? [];
    if (path !== undefined && told !== undefined) Object.assign(at(root, path), fieldOf(told));
  }
  return closed(root);
}

/** The node of a path, in which `*` is any key and `[]` any entry. */
function at(root: Schema, path: string): Schema {
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

function fieldOf(told: string): Schema {
  const [type = "", ...demands] = told.split(" ");
  const demand = (name: string): string | undefined =>
    demands.find((each) => each.startsWith(`${name}=`))?.slice(name.length + 1);
  if (type === "any") return { "x-kubernetes-preserve-unknown-fields": true };
  if (type === "int-or-string") return { "x-kubernetes-int-or-string": true };
  const required = demand("required")?.split(",");
  const values = demand("values");
  const items = demand("items");
  return {
    type,
    ...(required && { required }),
    ...(values !== undefined && { additionalProperties: fieldOf(values) }),
    ...(items !== undefined && { items: fieldOf(items) }),
  };
}

/** What the list says no more of, such as pod templates, holds anything. */
function closed(schema: Schema): Schema {
  const { properties, additionalProperties, items } = schema;
  if (schema.type === "object" && !properties && !additionalProperties) {
    return { ...schema, "x-kubernetes-preserve-unknown-fields": true };
  }
  if (schema.type === "array" && !items) return { ...schema, items: { "x-kubernetes-preserve-unknown-fields": true } };
  return {
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, closed(each)])),
    }),
    ...(additionalProperties && { additionalProperties: closed(additionalProperties) }),
    ...(items && { items: closed(items) }),
  };
}
