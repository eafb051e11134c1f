/** Templates: the schema of an object of which any part may be left out, to be merged over a generated object. */
import { Type, type Static, type TSchema, type TSchemaOptions, type TUnsafe } from "typebox";

import { wholeKeyword } from "./field.ts";
import { isRecord, mapRecord, type UnknownRecord } from "./record.ts";

type Overlay<T> = T extends readonly (infer Item)[]
  ? Overlay<Item>[]
  : T extends object
    ? { [Key in keyof T]?: Overlay<T[Key]> }
    : T;

export function overlayOf<T extends TSchema>(schema: T, options: TSchemaOptions): TUnsafe<Overlay<Static<T>>> {
  return Type.Unsafe<Overlay<Static<T>>>({ ...withoutDemands(schema), ...options });
}

/** Nothing is required, defaulted or bounded in an overlay, and lists need no keys. */
const demands: ReadonlySet<string> = new Set([
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

function withoutDemands(schema: unknown): UnknownRecord {
  if (!isRecord(schema)) throw new Error("a schema is an object");
  if (schema[wholeKeyword] === true) return schema;
  const kept = Object.entries(schema).filter(([keyword]) => !demands.has(keyword));
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, withoutDemandsBelow(keyword, value)]));
}

function withoutDemandsBelow(keyword: string, value: unknown): unknown {
  if (!isRecord(value)) return value;
  switch (keyword) {
    case "properties":
    case "patternProperties":
      return mapRecord(value, withoutDemands);
    case "items":
      return withoutDemands(value);
    default:
      return value;
  }
}
