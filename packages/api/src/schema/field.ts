/** Short constructors for schemas, so that a kind's file reads as a list of fields and descriptions. */
import { Type, type TEnum, type TSchema, type TSchemaOptions, type TUnsafe } from "typebox";

export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = Record<string, JsonValue>;

export const optional = Type.Optional;

export const text = (description: string, options: TSchemaOptions = {}) => Type.String({ description, ...options });

export const flag = (description: string, options: TSchemaOptions = {}) => Type.Boolean({ description, ...options });

export const int64 = (description: string, options: TSchemaOptions = {}) =>
  Type.Integer({ description, format: "int64", ...options });

export const int32 = (description: string, options: TSchemaOptions = {}) =>
  Type.Integer({ description, format: "int32", ...options });

export const time = (description: string) => Type.String({ description, format: "date-time" });

export const choice = <const T extends string[]>(values: [...T], description: string): TEnum<[...T]> =>
  Type.Enum(values, { type: "string", description });

export const listOf = <T extends TSchema>(items: T, description: string, options: TSchemaOptions = {}) =>
  Type.Array(items, { description, ...options });

export const texts = (description: string, options: TSchemaOptions = {}) => listOf(Type.String(), description, options);

export const mapOf = <T extends TSchema>(values: T, description: string, options: TSchemaOptions = {}) =>
  Type.Record(Type.String(), values, { description, ...options });

export const labels = (description: string) => mapOf(Type.String(), description);

/** Any JSON value, preserved as it is. */
export const anything = (description: string): TUnsafe<JsonValue> =>
  Type.Unsafe<JsonValue>({ description, ...keepUnknown });

/** On an object: the API server does not prune fields that the schema does not name. */
export const keepUnknown = { "x-kubernetes-preserve-unknown-fields": true };

/** On a list: this field identifies an entry, so that several field managers may own entries of one list. */
export const keyedBy = (key: string) => ({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key] });

/** On a list: one field manager owns the whole list. */
export const atomicList = { "x-kubernetes-list-type": "atomic" };

/** On a schema: a template (overlay.ts) keeps its constraints. */
export const wholeKeyword = "x-whole-in-templates";
export const wholeInTemplates = { [wholeKeyword]: true };
