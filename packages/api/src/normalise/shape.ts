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
  const problems = Value.Errors(schema, value).flatMap(problemsOf);
  for (const problem of problems.slice(0, mostProblems)) findings.problem(problem.field, problem);
  return undefined;
}

function problemsOf(error: TLocalizedValidationError): Problem[] {
  const path = stepsOf(error.instancePath);
  if (error.keyword !== "required") {
    return [{ field: fieldAt(path), message: error.message, remedy: explained(path) }];
  }
  return error.params.requiredProperties.map((name) => {
    const missing = path.concat(name);
    return { field: fieldAt(missing), message: "is missing", remedy: explained(missing) };
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

function explained(path: readonly string[]): string {
  const [first, second] = path.filter((step) => !isIndex(step));
  return `see kubectl explain KIND${[first, second].map((step) => (step ? `.${step}` : "")).join("")}`;
}
