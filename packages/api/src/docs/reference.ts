/** A kind's reference page, in Markdown. */
import { rootSchema, type KindDefinition } from "../crd/definition.ts";
import type { StructuralSchema } from "../crd/structural.ts";
import type { CelRule } from "../schema/cel.ts";

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
  return [`## ${name}`, escaped(schema.description ?? ""), [...fieldLines(name, schema)].join("\n")].join("\n\n");
}

/** One line for every field below `path`. In a path, `*` stands for any key and `[]` for any entry. */
function* fieldLines(path: string, schema: StructuralSchema): Iterable<string> {
  if (schema.items) yield* fieldLines(`${path}[]`, schema.items);
  if (schema.additionalProperties) yield* fieldLines(`${path}.*`, schema.additionalProperties);
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    yield fieldLine(`${path}.${name}`, child, schema.required?.includes(name) ?? false);
    yield* fieldLines(`${path}.${name}`, child);
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

/** What the API server refuses beyond types, by field. */
function rulesSection(root: StructuralSchema): string[] {
  const lines = [...ruleLines("", root)];
  return lines.length > 0 ? ["## Refused at once", lines.join("\n")] : [];
}

function* ruleLines(path: string, schema: StructuralSchema): Iterable<string> {
  for (const rule of schema["x-kubernetes-validations"] ?? []) yield `- ${fieldOf(path, rule)}${escaped(rule.message)}`;
  if (schema.items) yield* ruleLines(`${path}[]`, schema.items);
  if (schema.additionalProperties) yield* ruleLines(`${path}.*`, schema.additionalProperties);
  for (const [name, child] of Object.entries(schema.properties ?? {})) {
    yield* ruleLines(path ? `${path}.${name}` : name, child);
  }
}

function fieldOf(path: string, rule: CelRule): string {
  const field = path + (rule.fieldPath ?? "");
  return field ? `\`${field}\`: ` : "";
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

/** Angle brackets and stars are markup in Markdown. */
function escaped(text: string): string {
  return text.replaceAll(/[<>*_[\]]/g, (mark) => `\\${mark}`);
}
