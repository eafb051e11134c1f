/** From our schemas to what a CustomResourceDefinition may hold: the structural subset of OpenAPI. */
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
  if (!isRecord(schema)) throw new Error("a schema is an object");
  for (const [keyword, value] of Object.entries(schema)) Object.assign(result, converted(keyword, value));
  return result;
}

function converted(keyword: string, value: unknown): StructuralSchema {
  if (copied.has(keyword)) return { [keyword]: value };
  if (keyword === wholeKeyword) return {};
  if (keyword === "items") return { items: structural(value) };
  if (keyword === "properties" && isRecord(value)) return { properties: mapRecord(value, structural) };
  if (keyword === "patternProperties" && isRecord(value)) return { additionalProperties: mapValues(value) };
  throw new Error(`a custom resource's schema cannot say ${keyword}`);
}

/** The schema of the values of a map whose keys may be any text. */
function mapValues(patterns: UnknownRecord): StructuralSchema {
  const [values, ...others] = Object.values(patterns);
  if (others.length > 0) throw new Error("a map has one schema for all its values");
  return structural(values);
}

/** The same demands, with no description. */
export function withoutSentences(schema: StructuralSchema): StructuralSchema {
  const { properties, additionalProperties, items } = schema;
  const result: StructuralSchema = {
    ...schema,
    ...(properties && { properties: mapRecord(properties, (each) => withoutSentences(each as StructuralSchema)) }),
    ...(additionalProperties && { additionalProperties: withoutSentences(additionalProperties) }),
    ...(items && { items: withoutSentences(items) }),
  };
  delete result.description;
  return result;
}
