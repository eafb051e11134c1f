/** The file that `pulumi preview --save-plan` writes: what it changes, and what is removed from it before it is stored. */
import { urnName, urnType } from "@pko/records";
import { entry } from "../pulumi/project/project.ts";
import { unknownValue } from "../pulumi/signatures.ts";

/** What a plan does with one resource. */
export interface PlannedChange {
  readonly op: "replace" | "delete" | "create" | "update" | "other";
  readonly urn: string;
}

interface ResourcePlan {
  readonly urn: string;
  readonly steps: readonly string[];
  readonly goal: unknown;
}

const stackType = "pulumi:pulumi:Stack";

/**
 * The plan without the values of the stack's outputs. A value that differs from the planned one fails the update after
 * everything was applied, without a message; for a component that always happens (pulumi/pulumi 16670, 16681).
 */
export function withoutOutputs(file: unknown): unknown {
  const plans = Object.entries(asMap(entry(file, "resourcePlans"))).map(([urn, plan]) =>
    urnType(urn) === stackType ? ([urn, withUnknownOutputs(plan)] as const) : ([urn, plan] as const),
  );
  return { ...asMap(file), resourcePlans: Object.fromEntries(plans) };
}

function withUnknownOutputs(plan: unknown): unknown {
  const goal = entry(plan, "goal");
  const diff = entry(goal, "outputDiff");
  if (goal === undefined || diff === undefined) return plan;
  const hidden = Object.fromEntries(
    ["adds", "updates"].flatMap((name) => {
      const values = entry(diff, name);
      if (values === undefined) return [];
      return [[name, Object.fromEntries(Object.keys(asMap(values)).map((output) => [output, unknownValue]))] as const];
    }),
  );
  return { ...asMap(plan), goal: { ...asMap(goal), outputDiff: { ...asMap(diff), ...hidden } } };
}

export function plannedChanges(file: unknown): PlannedChange[] {
  return resourcePlans(file).flatMap(({ urn, steps, goal }) => {
    const op = changeOf(steps);
    // What the program creates has a parent.
    const isDefault = isDefaultProvider(urn) && entry(goal, "parent") === undefined;
    return op === undefined || isDefault ? [] : [{ op, urn }];
  });
}

/** How many inputs of changed resources have values that are unknown until the plan is applied. */
export function unknownInputs(file: unknown): number {
  const changed = resourcePlans(file).filter(({ steps }) => changeOf(steps) !== undefined);
  const diffs = changed.map(({ goal }) => entry(goal, "inputDiff"));
  const values = diffs.flatMap((diff) => [entry(diff, "adds"), entry(diff, "updates")]).flatMap(valuesOf);
  return values.filter(hasUnknown).length;
}

function valuesOf(map: unknown): unknown[] {
  return Object.values(asMap(map));
}

function resourcePlans(file: unknown): ResourcePlan[] {
  return Object.entries(asMap(entry(file, "resourcePlans"))).map(([urn, plan]) => {
    const steps = entry(plan, "steps");
    const names = Array.isArray(steps) ? steps.filter((step) => typeof step === "string") : [];
    return { urn, steps: names, goal: entry(plan, "goal") };
  });
}

/** Steps that change neither a resource nor what the stack manages. */
const harmless: ReadonlySet<string> = new Set(["same", "read", "refresh"]);

/** A replacement is several steps of one resource. */
export function changeOf(steps: readonly string[]): PlannedChange["op"] | undefined {
  if (steps.every((step) => harmless.has(step))) return undefined;
  if (steps.some((step) => step === "replace" || step.endsWith("-replacement") || step.endsWith("-replaced")))
    return "replace";
  const known = (["delete", "create", "update"] as const).find((op) => steps.includes(op));
  return known ?? (steps.some((step) => step.startsWith("discard")) ? "delete" : "other");
}

/** `default`, then the version of the plugin and the address that it is downloaded from, if the program names them. */
const defaultName = /^default(_\d+_\d+_\d+(_.*)?|_(https?|github|gitlab|file)_.*)?$/;

/** The engine creates and deletes these itself. It does not count any provider whose name starts with `default`. */
export function isDefaultProvider(urn: string): boolean {
  return urnType(urn).startsWith("pulumi:providers:") && defaultName.test(urnName(urn));
}

function hasUnknown(value: unknown): boolean {
  if (value === unknownValue) return true;
  return typeof value === "object" && value !== null && Object.values(value).some(hasUnknown);
}

function asMap(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}
