/**
 * What a line may contain: plain JSON data, limited in depth and length, without secrets. The values of keys that look like
 * secrets are never written, and an error shows only its message, stack and a few harmless fields (others may contain a
 * request with its headers).
 */

export interface Redaction {
  /** Names of keys whose values are not written. */
  readonly keys: readonly string[];
  /** Masks known secrets in a text. */
  readonly text: (text: string) => string;
}

interface RedactionOptions {
  readonly redactKeys?: readonly string[];
  readonly redact?: (text: string) => string;
}

export const redactionFor = ({ redactKeys = [], redact = (text) => text }: RedactionOptions): Redaction => ({
  keys: [...secretKeys, ...redactKeys.map(plainKey)],
  text: redact,
});

export type Plain = string | number | boolean | null | undefined | Plain[] | { [key: string]: Plain };
export type PlainKeys = { [key: string]: Plain };

const secretKeys = ["authorization", "cookie", "credential", "password", "passphrase", "privatekey", "secret", "token"];
/** References to secrets are not secret and are useful: `secretName`, `tokenSecretRef`. */
const referenceKey = /(name|names|namespace|ref|refs|type|count|expiresat|expirationseconds)$/;

const maxTextLength = 8192;
const maxDepth = 6;
const maxItems = 100;

export const plainMessage = (message: string, redaction: Redaction): string => truncated(redaction.text(message));

/** A value that cannot be read is replaced. */
export function plainKeys(keys: Readonly<Record<string, unknown>>, redaction: Redaction): PlainKeys {
  const plain: PlainKeys = {};
  for (const [key, value] of Object.entries(keys)) {
    if (value !== undefined) plain[key] = safely(() => plainValue(value, { key, depth: 0, redaction }));
  }
  return plain;
}

function safely(read: () => Plain): Plain {
  try {
    return read();
  } catch {
    return "[unreadable]";
  }
}

interface Place {
  readonly key: string;
  readonly depth: number;
  readonly redaction: Redaction;
}

function plainValue(value: unknown, place: Place): Plain {
  if (isSecretKey(place.key, place.redaction.keys)) return "[redacted]";
  switch (typeof value) {
    case "string":
      return truncated(place.redaction.text(value));
    case "number":
    case "boolean":
      return value;
    case "bigint":
      return value.toString();
    case "object":
      return value === null ? null : plainObject(value, place);
    case "undefined":
    case "function":
    case "symbol":
    default:
      return undefined;
  }
}

function plainObject(value: object, place: Place): Plain {
  if (place.depth >= maxDepth) return "[too deep]";
  if (value instanceof Error) return plainError(value, place);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
  if (value instanceof URL) return plainValue(withoutCredentials(value), place);
  const inner = { ...place, depth: place.depth + 1 };
  if (Array.isArray(value)) return value.slice(0, maxItems).map((item: unknown) => plainValue(item, inner));
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`;
  if (value instanceof Set) return plainObject([...value], place);
  if (value instanceof Map) return plainObject(mapFields(value), place);
  const entries = Object.entries(value).slice(0, maxItems);
  return Object.fromEntries(entries.map(([key, item]) => [key, plainValue(item, { ...inner, key })]));
}

function mapFields(map: ReadonlyMap<unknown, unknown>): object {
  return Object.fromEntries([...map].map(([key, value]) => [String(key), value]));
}

/** Fields of errors, ours and Node's, that never contain a secret. */
const harmlessErrorFields = new Set(["code", "errno", "syscall", "status", "reason"]);

function plainError(error: Error, place: Place): Plain {
  const inner = { ...place, depth: place.depth + 1 };
  const plain: PlainKeys = { name: error.name, message: plainValue(error.message, place) };
  for (const [key, value] of Object.entries(error)) {
    if (harmlessErrorFields.has(key)) plain[key] = plainValue(value, { ...inner, key });
  }
  if (error.cause !== undefined) plain["cause"] = plainValue(error.cause, inner);
  if (error instanceof AggregateError) plain["errors"] = plainValue(error.errors, inner);
  if (error.stack && place.depth === 0) plain["stack"] = plainValue(error.stack, place);
  return plain;
}

function withoutCredentials(url: URL): string {
  const copy = new URL(url);
  copy.username = "";
  copy.password = "";
  return copy.href;
}

function isSecretKey(key: string, secrets: readonly string[]): boolean {
  const plain = plainKey(key);
  return !referenceKey.test(plain) && secrets.some((secret) => plain.includes(secret));
}

function plainKey(key: string): string {
  return key.toLowerCase().replaceAll(/[-_.]/g, "");
}

function truncated(text: string): string {
  return text.length <= maxTextLength ? text : `${text.slice(0, maxTextLength)}… (${text.length} characters)`;
}
