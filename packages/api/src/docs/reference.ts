/** A kind's reference page, in Markdown. */
import { rootSchema, type KindDefinition } from "../crd/definition.ts";
import type { StructuralSchema } from "../crd/structural.ts";

export function referencePage(definition: KindDefinition): string {
  const root = rootSchema(definition);
  const fields = Object.keys(definition.fields);
  return [
    `# ${definition.kind}`,
    root.description,
    facts(definition),
    ...fields.map((name) => fieldsSection(name, root.properties?.[name] ?? {})),
    ...rulesSection(root),
    ...conditionsSection(definition),
    "## Columns",
    ...columns(definition),
  ].join("\n\n");
}

function facts({ group, versions, plural, shortNames }: KindDefinition): string {
  const served = versions.map((version) => `\`${group}/${version}\``).join(" and ");
  const commands = [plural, ...shortNames].map((name) => `\`kubectl get ${name}\``).join(" or ");
  return `Served as ${served}. List with ${commands}; explain a field with \`kubectl explain\`.`;
}

function fieldsSection(name: string, schema: StructuralSchema): string {
  const lines = [...fieldLines(name, schema, new Map())];
  return [`## ${name}`, escaped(schema.description ?? ""), lines.join("\n")].join("\n\n");
}

/** Fields that were told already, with the path where. */
type Told = Map<string, string>;

/** One line for every field below `path`. In a path, `*` stands for any key and `[]` for any entry. */
function* fieldLines(path: string, schema: StructuralSchema, told: Told): Iterable<string> {
  if (schema.items) yield* fieldLines(`${path}[]`, schema.items, told);
  if (schema.additionalProperties) yield* fieldLines(`${path}.*`, schema.additionalProperties, told);
  if (!schema.properties) return;
  const fields = JSON.stringify(schema.properties);
  const before = told.get(fields);
  if (before) yield `- \`${path}\` has the fields of \`${before}\`.`;
  if (before) return;
  told.set(fields, path);
  for (const [name, child] of Object.entries(schema.properties)) {
    yield fieldLine(`${path}.${name}`, child, schema.required?.includes(name) ?? false);
    yield* fieldLines(`${path}.${name}`, child, told);
  }
}

function fieldLine(path: string, schema: StructuralSchema, required: boolean): string {
  const traits = [
    typeOf(schema),
    ...(required ? ["required"] : []),
    ...(schema["default"] === undefined ? [] : [`default ${JSON.stringify(schema["default"])}`]),
  ];
  return `- \`${path}\` (${traits.join(", ")}): ${escaped(schema.description ?? "")}`;
}

function typeOf(schema: StructuralSchema): string {
  if (schema.items) return `list of ${typeOf(schema.items)}`;
  if (schema.additionalProperties) return `map of ${typeOf(schema.additionalProperties)}`;
  if (schema["x-kubernetes-int-or-string"]) return "integer or string";
  return schema.type ?? "any";
}

/** What the API server refuses beyond types, with the fields that it refuses it in. */
function rulesSection(root: StructuralSchema): string[] {
  const fields = new Map<string, string[]>();
  for (const [field, message] of rulesOf("", root)) fields.set(message, [...(fields.get(message) ?? []), field]);
  const lines = [...fields].map(([message, paths]) => `- ${escaped(message)}: ${paths.map(quoted).join(", ")}`);
  return lines.length > 0 ? ["## Refused at once", lines.join("\n")] : [];
}

function* rulesOf(path: string, schema: StructuralSchema): Iterable<[field: string, message: string]> {
  for (const { fieldPath = "", message } of schema["x-kubernetes-validations"] ?? []) yield [path + fieldPath, message];
  if (schema.items) yield* rulesOf(`${path}[]`, schema.items);
  if (schema.additionalProperties) yield* rulesOf(`${path}.*`, schema.additionalProperties);
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    yield* rulesOf(path ? `${path}.${name}` : name, child);
  }
}

const quoted = (field: string): string => (field ? `\`${field}\`` : "the object");

function conditionsSection({ conditions }: KindDefinition): string[] {
  const lines = Object.entries(conditions).map(([type, reasons]) =>
    [`- \`${type}\``, ...Object.entries(reasons).map(([reason, meaning]) => `  - \`${reason}\`: ${meaning}`)].join(
      "\n",
    ),
  );
  return lines.length > 0 ? ["## Conditions", lines.join("\n")] : [];
}

function columns(definition: KindDefinition): string[] {
  const lines = definition.columns.map(
    ({ name, wide, jsonPath, description }) =>
      `- ${name}${wide ? " (with `--output wide`)" : ""}: ${description} \`${jsonPath}\``,
  );
  return [lines.join("\n")];
}

/** Angle brackets and stars are markup in Markdown. */
function escaped(text: string): string {
  return text.replaceAll(/[<>*_[\]]/g, (mark) => `\\${mark}`);
}
