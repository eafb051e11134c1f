/** Converts our schemas to structural schemas, the subset of OpenAPI that a CustomResourceDefinition may contain. */
import type { CelRule } from "../schema/cel.ts";
import { wholeKeyword } from "../schema/field.ts";
import { isRecord, mapRecord, type UnknownRecord } from "../schema/record.ts";

export interface StructuralSchema {
  type?: string;
  description?: string;
  properties?: Record<string, StructuralSchema>;
  additionalProperties?: StructuralSchema;
  items?: StructuralSchema;
  required?: string[];
  "x-kubernetes-validations"?: readonly CelRule[];
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

export function structural(schema: unknown): StructuralSchema {
  const result: StructuralSchema = {};
  if (!isRecord(schema)) throw new Error("the schema is not an object");
  for (const [keyword, value] of Object.entries(schema)) Object.assign(result, converted(keyword, value));
  return result;
}

function converted(keyword: string, value: unknown): StructuralSchema {
  if (copied.has(keyword)) return { [keyword]: value };
  if (keyword === wholeKeyword) return {};
  if (keyword === "items") return { items: structural(value) };
  if (keyword === "properties" && isRecord(value)) return { properties: mapRecord(value, structural) };
  if (keyword === "patternProperties" && isRecord(value)) return { additionalProperties: mapValues(value) };
  throw new Error(`a structural schema cannot contain the keyword ${keyword}`);
}

/** The schema of the values of a map with arbitrary keys. */
function mapValues(patterns: UnknownRecord): StructuralSchema {
  const [values, ...others] = Object.values(patterns);
  if (others.length > 0) throw new Error("a map must have one schema for all its values");
  return structural(values);
}

/** The same schema without descriptions, to save space. */
export function withoutDescriptions(schema: StructuralSchema): StructuralSchema {
  const { properties, additionalProperties, items } = schema;
  const result: StructuralSchema = {
    ...schema,
    ...(properties && { properties: mapRecord(properties, (each) => withoutDescriptions(each as StructuralSchema)) }),
    ...(additionalProperties && { additionalProperties: withoutDescriptions(additionalProperties) }),
    ...(items && { items: withoutDescriptions(items) }),
  };
  delete result.description;
  return result;
}
