/** Parsing at the edge: text becomes a value of the protocol, or a problem that names the field that does not match. */
import type { Static, TSchema } from "typebox";
import { Check, Clean, Errors } from "typebox/value";

type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

export function parseJson<S extends TSchema>(schema: S, text: string): Parsed<Static<S>> {
  const json = readJson(text);
  return json.ok ? checkValue(schema, json.value) : json;
}

/** Parses a request and drops unknown fields, because a newer operator may send some. */
export function parseRequest<S extends TSchema>(schema: S, text: string): Parsed<Static<S>> {
  const json = readJson(text);
  if (!json.ok) return json;
  try {
    return checkValue(schema, Clean(schema, json.value));
  } catch {
    // `Clean` copies the values of a union recursively, so deep nesting overflows the stack.
    return { ok: false, problem: "nested too deeply" };
  }
}

export function readJson(text: string): Parsed<unknown> {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch {
    // The parser's message quotes its input, which may hold a secret.
    return { ok: false, problem: "not JSON" };
  }
}

export function checkValue<S extends TSchema>(schema: S, value: unknown): Parsed<Static<S>> {
  if (Check(schema, value)) return { ok: true, value };
  const [first] = Errors(schema, value);
  // Only the path and the rule, never the value, which may be secret.
  return { ok: false, problem: `${first?.instancePath || "/"} ${first?.message ?? "does not match the schema"}` };
}
