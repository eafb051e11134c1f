/** From our schemas to what a CustomResourceDefinition may hold: the structural subset of OpenAPI. */
import type { TSchema } from "typebox";

export interface StructuralSchema {
  type?: string;
  description?: string;
  properties?: Record<string, StructuralSchema>;
  additionalProperties?: StructuralSchema;
  items?: StructuralSchema;
  required?: string[];
  [keyword: string]: unknown;
}

const copied: ReadonlySet<string> = new Set([
  "type",
  "description",
  "required",
  "default",
  "enum",
  "format",
  "pattern",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "maxItems",
  "maxProperties",
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-int-or-string",
  "x-kubernetes-list-type",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-validations",
]);

/** Our own keywords, which end here. */
const own: ReadonlySet<string> = new Set(["x-whole-in-templates"]);

export function structural(schema: TSchema): StructuralSchema {
  const result: StructuralSchema = {};
  for (const [keyword, value] of Object.entries(schema)) Object.assign(result, converted(keyword, value));
  return result;
}

function converted(keyword: string, value: unknown): StructuralSchema {
  if (copied.has(keyword)) return { [keyword]: value };
  if (own.has(keyword)) return {};
  switch (keyword) {
    case "properties":
      return { properties: eachStructural(value as Record<string, TSchema>) };
    case "items":
      return { items: structural(value as TSchema) };
    case "patternProperties":
      return { additionalProperties: mapValues(value as Record<string, TSchema>) };
    default:
      throw new Error(`a custom resource's schema cannot say ${keyword}`);
  }
}

function eachStructural(schemas: Record<string, TSchema>): Record<string, StructuralSchema> {
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, structural(schema)]));
}

/** The schema of a map whose keys may be any text. */
function mapValues(patterns: Record<string, TSchema>): StructuralSchema {
  const [values, ...others] = Object.values(patterns);
  if (!values || others.length > 0) throw new Error("a map has one schema for all its values");
  return structural(values);
}
