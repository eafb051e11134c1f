/** Does a value have the shape of its schema at all? Everything after this may trust the types. */
import type { TLocalizedValidationError } from "typebox/error";
import { Type, type Static, type TSchema } from "typebox";
import { Value } from "typebox/value";

import { optional } from "../schema/field.ts";
import type { Findings, Problem } from "./findings.ts";

/** Enough to mend a spec by; a mangled object could have thousands. */
const mostProblems = 20;

/** The part of metadata that normalisers look at. */
export const NamedMetadata = Type.Object({ name: Type.String(), namespace: optional(Type.String()) });

/** Returns the value with its type, or undefined when problems were found. */
export function shaped<T extends TSchema>(schema: T, value: unknown, findings: Findings): Static<T> | undefined {
  if (Value.Check(schema, value)) return value;
  const problems = Value.Errors(schema, value).flatMap((error) => problemsOf(error, findings.kind));
  for (const problem of problems.slice(0, mostProblems)) findings.problem(problem.field, problem);
  return undefined;
}

function problemsOf(error: TLocalizedValidationError, kind: string): Problem[] {
  const path = stepsOf(error.instancePath);
  if (error.keyword !== "required") {
    return [{ field: fieldAt(path), message: error.message, remedy: explained(kind, path) }];
  }
  return error.params.requiredProperties.map((name) => {
    const missing = path.concat(name);
    return { field: fieldAt(missing), message: "is missing", remedy: explained(kind, missing) };
  });
}

/** From a JSON pointer. */
function stepsOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

const isIndex = (step: string): boolean => /^\d+$/.test(step);

function fieldAt(path: readonly string[]): string {
  const [first = "the object", ...others] = path;
  return others.reduce((field, step) => (isIndex(step) ? `${field}[${step}]` : `${field}.${step}`), first);
}

/** To the depth that is the same in every spec: deeper down are users' own keys. */
function explained(kind: string, path: readonly string[]): string {
  return `see kubectl explain ${[kind, ...path.slice(0, 2)].join(".")}`;
}
