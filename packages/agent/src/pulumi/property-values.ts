/**
 * Values of properties for people to read. The engine masks what programs and providers declare secret. A value may still
 * be secret without having been declared: what the redactor knows and what has the name of a secret is masked, too.
 */
import { maxValueChars } from "@pko/records";
import { truncate, type Clean } from "../system/clean-text.ts";
import { describesSecret } from "../system/secret-forms.ts";
import type { Cleaner } from "./engine-events.ts";
import { entry } from "./project/project.ts";
import type { PropertyPath } from "./property-path.ts";
import { secretSignature, signatureKey, unknownValue } from "./signatures.ts";

const mask = "[secret]";
const maxDepth = 64;
/** A longer value is not searched for secrets, so it is not shown: it is an archive or a document. */
const maxSearchedChars = 64 * 1024;

interface Property {
  readonly value: unknown;
  /** The name that shows whether the value is secret: an item of a list has the name of the list. */
  readonly name: string;
}

/** Undefined if there is no such property. */
export function findProperty(root: unknown, path: PropertyPath): Property | undefined {
  let found: Property = { value: root, name: "" };
  for (const segment of path) {
    // A part of a secret is as secret as the whole.
    if (isSecret(found.value)) return found;
    const value = entry(found.value, String(segment));
    if (value === undefined) return undefined;
    found = { value, name: nameOf(found, String(segment)) };
  }
  return found;
}

/** As JSON, truncated after secrets have been masked. Undefined if the value is not known yet. */
export function showValue({ value, name }: Property, clean: Cleaner): Clean | undefined {
  if (value === unknownValue) return undefined;
  const shown = JSON.stringify(shownPart({ value, name }, clean, 0)) ?? "null";
  if (shown.length > maxSearchedChars) return truncate(clean(`"[${shown.length} characters]"`), maxValueChars);
  // Again as a whole, because numbers and names of properties may be secret, too.
  return truncate(clean(shown), maxValueChars);
}

function shownPart(property: Property, clean: Cleaner, depth: number): unknown {
  const { value, name } = property;
  if (isSecret(value)) return mask;
  if (typeof value === "string" || typeof value === "number") return shownScalar(value, name, clean);
  if (typeof value !== "object" || value === null) return value;
  if (entry(value, signatureKey) !== undefined) return signedValue(value);
  if (depth === maxDepth) return "…";
  const parts = Object.entries(value).map(([key, inner]) => {
    const part = { value: inner as unknown, name: nameOf(property, key) };
    return [key, shownPart(part, clean, depth + 1)] as const;
  });
  return Array.isArray(value) ? parts.map(([, part]) => part) : Object.fromEntries(parts);
}

function shownScalar(value: string | number, name: string, clean: Cleaner): unknown {
  if (value === unknownValue) return "[unknown]";
  if (describesSecret(name)) return mask;
  if (typeof value === "number") return value;
  return value.length > maxSearchedChars ? `[${value.length} characters]` : clean(value);
}

/** In a list of variables, `{ name, value }`, the name of a value is beside it. */
function nameOf(parent: Property, key: string): string {
  if (Array.isArray(parent.value)) return parent.name;
  const beside = key === "value" ? entry(parent.value, "name") : undefined;
  return typeof beside === "string" ? beside : key;
}

function isSecret(value: unknown): boolean {
  return entry(value, signatureKey) === secretSignature;
}

/** An asset, an archive or a reference to a resource. */
function signedValue(value: object): string {
  const [hash, urn] = [entry(value, "hash"), entry(value, "urn")];
  if (typeof hash === "string" && /^[0-9a-f]+$/.test(hash)) return `[file ${hash.slice(0, 12)}]`;
  return typeof urn === "string" ? urn : "[object]";
}
