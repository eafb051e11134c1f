/**
 * Values of properties for people to read. The engine masks what programs and providers declare secret. A value may still
 * be secret without having been declared: what the redactor knows, what has the name of a secret or is part of something with such a name, and what has
 * the form of a credential is masked, too.
 */
import { maskCredentials, maxValueChars } from "@pko/records";
import { truncate, type Clean } from "../system/clean-text.ts";
import { describesSecret, maskNamedSecrets } from "../system/secret-forms.ts";
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
  /** Whether its name, or the name of something that contains it, shows that its value is secret. */
  readonly isHidden: boolean;
  /** Whether it belongs to a resource whose data is secret. */
  readonly isOfSecret: boolean;
}

/** Undefined if there is no such property. */
export function findProperty(root: unknown, path: PropertyPath, resourceType = ""): Property | undefined {
  let found: Property = { value: root, name: "", isHidden: false, isOfSecret: secretTypes.test(resourceType) };
  for (const segment of path) {
    // A part of a secret is as secret as the whole.
    if (isSecret(found.value)) return found;
    const value = entry(found.value, String(segment));
    if (value === undefined) return undefined;
    found = partOf(found, String(segment), value);
  }
  return found;
}

/** As JSON, truncated after secrets have been masked. Undefined if the value is not known yet. */
export function showValue(property: Property, clean: Cleaner): Clean | undefined {
  if (property.value === unknownValue) return undefined;
  const shown = JSON.stringify(shownPart(property, clean, 0)) ?? "null";
  if (shown.length > maxSearchedChars) return truncate(clean(`"[${shown.length} characters]"`), maxValueChars);
  // Again as a whole, because numbers and names of properties may be secret, too.
  return truncate(clean(shown), maxValueChars);
}

function shownPart(property: Property, clean: Cleaner, depth: number): unknown {
  const { value } = property;
  if (isSecret(value)) return mask;
  if (typeof value === "string" || typeof value === "number") return shownScalar(value, property, clean);
  if (typeof value !== "object" || value === null) return value;
  if (entry(value, signatureKey) !== undefined) return signedValue(value);
  if (depth === maxDepth) return "…";
  const parts = Object.entries(value).map(
    ([key, inner]) => [key, shownPart(partOf(property, key, inner), clean, depth + 1)] as const,
  );
  return Array.isArray(value) ? parts.map(([, part]) => part) : Object.fromEntries(parts);
}

function shownScalar(value: string | number, { isHidden }: Property, clean: Cleaner): unknown {
  if (value === unknownValue) return "[unknown]";
  if (isHidden) return mask;
  if (typeof value === "number") return value;
  if (value.length > maxSearchedChars) return `[${value.length} characters]`;
  return maskNamedSecrets(maskCredentials(clean(value), mask), mask);
}

/** The types of resources whose data is secret: `kubernetes:core/v1:Secret`, `azure:keyvault/secret:Secret`. */
const secretTypes = /:Secret(Patch|List)?$/;
const secretFields: ReadonlySet<string> = new Set(["data", "stringData", "value", "dataJson"]);
/** Documents that contain credentials: kubeconfigs, and the manifest of a Secret in an annotation. */
const secretDocument = /kube_?config(?!.*(path|file|name)$)|^kubectl\.kubernetes\.io\/last-applied-configuration$/i;

function partOf(parent: Property, key: string, value: unknown): Property {
  const name = nameOf(parent, key);
  const isOfSecret = parent.isOfSecret || entry(parent.value, "kind") === "Secret";
  const isSecretField = isOfSecret && secretFields.has(key);
  const isHidden = parent.isHidden || isSecretField || secretDocument.test(name) || hasSecretName(name, value);
  return { value, name, isHidden, isOfSecret };
}

function hasSecretName(name: string, value: unknown): boolean {
  // A volume refers to a Secret, and contains nothing of it.
  const isReference = name === "secret" && typeof entry(value, "secretName") === "string";
  return describesSecret(name) && !isReference;
}

/** In a list of variables, `{ name, value }`, or of pairs, `{ key, value }`, the name of a value is beside it. */
function nameOf(parent: Property, key: string): string {
  if (Array.isArray(parent.value)) return parent.name;
  const beside = key === "value" ? (entry(parent.value, "name") ?? entry(parent.value, "key")) : undefined;
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
