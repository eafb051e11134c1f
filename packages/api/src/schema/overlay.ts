/** Templates: the schema of an object of which any part may be left out, to be merged over a generated object. */
import { Type, type Static, type TSchema, type TSchemaOptions, type TUnsafe } from "typebox";

import { wholeKeyword } from "./field.ts";

export type Overlay<T> = T extends readonly (infer Item)[]
  ? Overlay<Item>[]
  : T extends object
    ? { [Key in keyof T]?: Overlay<T[Key]> }
    : T;

/** Nothing is required and nothing defaulted in an overlay, and lists need no keys. */
const dropped: ReadonlySet<string> = new Set([
  "required",
  "default",
  "x-kubernetes-list-type",
  "x-kubernetes-list-map-keys",
]);

export function overlayOf<T extends TSchema>(schema: T, options: TSchemaOptions): TUnsafe<Overlay<Static<T>>> {
  return Type.Unsafe<Overlay<Static<T>>>({ ...withoutDemands(schema), ...options });
}

type Node = Record<string, unknown>;

function withoutDemands(schema: object): Node {
  const node = schema as Node;
  if (node[wholeKeyword] === true) return node;
  const kept = Object.entries(node).filter(([keyword]) => !dropped.has(keyword));
  return Object.fromEntries(kept.map(([keyword, value]) => [keyword, withoutDemandsBelow(keyword, value)]));
}

function withoutDemandsBelow(keyword: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  switch (keyword) {
    case "properties":
    case "patternProperties":
      return Object.fromEntries(Object.entries(value).map(([name, child]) => [name, withoutDemands(child as object)]));
    case "items":
      return withoutDemands(value);
    default:
      return value;
  }
}
