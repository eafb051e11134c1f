/** Schemas of templates: every field is optional, because the template is merged over a generated object. */
import { Type, type Static, type TSchema, type TSchemaOptions, type TUnsafe } from "typebox";

import { wholeKeyword } from "./field.ts";
import { isRecord, mapRecord, type UnknownRecord } from "./record.ts";

type Overlay<T> = T extends readonly (infer Item)[]
  ? Overlay<Item>[]
  : T extends object
    ? { [Key in keyof T]?: Overlay<T[Key]> }
    : T;

export function overlayOf<T extends TSchema>(schema: T, options: TSchemaOptions): TUnsafe<Overlay<Static<T>>> {
  return Type.Unsafe<Overlay<Static<T>>>({ ...withoutConstraints(schema), ...options });
}

/** In an overlay, nothing is required, defaulted or limited, and lists need no keys. */
const constraints: ReadonlySet<string> = new Set([
  "required",
  "default",
  "enum",
  "pattern",
  "minLength",
  "maxLength",
  "maxItems",
  "minimum",
  "x-kubernetes-list-type",
  "x-kubernetes-list-map-keys",
]);

function withoutConstraints(schema: unknown): UnknownRecord {
  if (!isRecord(schema)) throw new Error("the schema is not an object");
  if (schema[wholeKeyword] === true) return schema;
  const kept = Object.entries(schema).filter(([keyword]) => !constraints.has(keyword));
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, withoutNestedConstraints(keyword, value)]));
}

function withoutNestedConstraints(keyword: string, value: unknown): unknown {
  if (!isRecord(value)) return value;
  switch (keyword) {
    case "properties":
    case "patternProperties":
      return mapRecord(value, withoutConstraints);
    case "items":
      return withoutConstraints(value);
    default:
      return value;
  }
}
