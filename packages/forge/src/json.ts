/** Reads responses, which may contain anything. Pure. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

export const isRecord = (value: Json | undefined): value is Readonly<Record<string, Json>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What is at the path; undefined if there is nothing. */
export function at(value: Json | undefined, ...path: readonly string[]): Json | undefined {
  let found = value;
  for (const name of path) found = isRecord(found) ? found[name] : undefined;
  return found;
}

export const listAt = (value: Json | undefined, ...path: readonly string[]): readonly Json[] => {
  const found = at(value, ...path);
  return Array.isArray(found) ? (found as readonly Json[]) : [];
};

/** Half of a character, which JSON may contain, could not be part of a URL. */
export const textAt = (value: Json | undefined, ...path: readonly string[]): string => {
  const found = at(value, ...path);
  return typeof found === "string" ? found.toWellFormed() : typeof found === "number" ? String(found) : "";
};

export const numberAt = (value: Json | undefined, ...path: readonly string[]): number => {
  const found = at(value, ...path);
  return typeof found === "number" ? found : Number.NaN;
};

const maxName = 1024;

/** A name or a URL. One that is longer is none: what is read here stays in memory, and the server may send anything. */
export const nameAt = (value: Json | undefined, ...path: readonly string[]): string => {
  const found = textAt(value, ...path);
  return found.length <= maxName ? found : "";
};

const maxLabels = 100;

/** The names of labels, as objects or as texts. */
export const labelsAt = (value: Json | undefined): string[] =>
  listAt(value, "labels")
    .slice(0, maxLabels)
    .map((label) => (isRecord(label) ? nameAt(label, "name") : nameAt(label)));
