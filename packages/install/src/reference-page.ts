/** The Markdown reference page of a kind. */
import { rootSchema, unused, type KindDefinition, type StructuralSchema } from "@pko/api";

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

/** Objects that the page already describes: their fields as JSON → the path of the first object. */
type DescribedObjects = Map<string, string>;

/** A line for every field below `path`. In a path, `*` is any key and `[]` any entry. */
function* fieldLines(path: string, schema: StructuralSchema, described: DescribedObjects): Iterable<string> {
  if (schema.items) yield* fieldLines(`${path}[]`, schema.items, described);
  if (schema.additionalProperties) yield* fieldLines(`${path}.*`, schema.additionalProperties, described);
  const fields = Object.entries(schema.properties ?? {});
  for (const [name, child] of fields.filter(([, { description }]) => description !== unused)) {
    const before = describedBefore(`${path}.${name}`, child, described);
    const like = before ? ` It has the same fields as \`${before}\`.` : "";
    yield fieldLine(`${path}.${name}`, child, schema.required?.includes(name) ?? false) + like;
    if (!before) yield* fieldLines(`${path}.${name}`, child, described);
  }
  const without = fields.filter(([, { description }]) => description === unused).map(([name]) => `\`${path}.${name}\``);
  if (without.length > 0) yield `- ${without.join(", ")}: ${unused}`;
}

/** The path of an earlier object with the same fields, if any. */
function describedBefore(path: string, schema: StructuralSchema, described: DescribedObjects): string | undefined {
  const content = schema.items ?? schema.additionalProperties ?? schema;
  if (!content.properties) return undefined;
  const fields = JSON.stringify(content.properties);
  const before = described.get(fields);
  if (!before) described.set(fields, path);
  return before;
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

/** The messages of the API server's validation rules, with the fields that each applies to. */
function rulesSection(root: StructuralSchema): string[] {
  const fields = new Map<string, string[]>();
  for (const [field, message] of rulesOf("", root)) fields.set(message, [...(fields.get(message) ?? []), field]);
  const lines = [...fields].map(([message, paths]) => `- ${quotedPaths(paths)}${escaped(message)}`);
  return lines.length > 0
    ? ["## Validation", "The API server rejects objects that violate these rules.", lines.join("\n")]
    : [];
}

function* rulesOf(path: string, schema: StructuralSchema): Iterable<[field: string, message: string]> {
  for (const { fieldPath = "", message } of schema["x-kubernetes-validations"] ?? []) yield [path + fieldPath, message];
  if (schema.items) yield* rulesOf(`${path}[]`, schema.items);
  if (schema.additionalProperties) yield* rulesOf(`${path}.*`, schema.additionalProperties);
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    yield* rulesOf(path ? `${path}.${name}` : name, child);
  }
}

/** The message of a rule on the whole object contains the field. */
function quotedPaths(paths: readonly string[]): string {
  const fields = paths.filter((path) => path !== "");
  return fields.length > 0 ? `${fields.map((path) => `\`${path}\``).join(", ")}: ` : "";
}

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

/** Escapes characters that are Markdown markup. */
function escaped(text: string): string {
  return text.replaceAll(/[<>*_[\]]/g, (mark) => `\\${mark}`);
}
