/** For targets whose inputs describe binary data as JSON: what is missing or wrong becomes something usable. */

export const numberIn = (value: unknown, otherwise: number): number => (typeof value === "number" ? value : otherwise);
/** From latin1. */
export const bytesIn = (value: unknown): Buffer => Buffer.from(textIn(value), "latin1");
export const textIn = (value: unknown): string => (typeof value === "string" ? value : "");

/** The objects of a list. */
export function objectsIn(value: unknown, most: number): readonly Readonly<Record<string, unknown>>[] {
  const items: readonly unknown[] = Array.isArray(value) ? value.slice(0, most) : [];
  return items.filter((item) => typeof item === "object" && item !== null) as Record<string, unknown>[];
}
