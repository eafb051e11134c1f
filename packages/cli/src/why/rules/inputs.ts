/** Rules about the spec, its inputs, the source and other Stacks. */
import { reportsDependencyCycle, reportsMissingInput, reportsMissingOutput, reportsMissingSource } from "@pko/api";

import { next, summaries } from "../messages.ts";
import { cause, conditionWith, decide, messageIn, retryOf, type Rule } from "./rule.ts";

export const ownershipConflict: Rule = (facts) =>
  conditionWith(facts, "OwnershipConflict")
    ? decide("ownershipConflict", {
        summary: summaries.ownershipConflict(facts),
        message: messageIn(facts),
        next: [next.rename],
      })
    : undefined;

export const dependencyCycle: Rule = (facts) =>
  reportsDependencyCycle(conditionWith(facts, "SpecInvalid")?.message ?? "")
    ? decide("dependencyCycle", {
        summary: summaries.dependencyCycle,
        message: messageIn(facts),
        next: [next.cycle, next.edit(facts)],
      })
    : undefined;

export const inputMissing: Rule = (facts) =>
  reportsMissingInput(conditionWith(facts, "SpecInvalid", "WorkspaceFailed", "SourceUnavailable")?.message ?? "")
    ? decide("inputMissing", {
        summary: summaries.inputMissing(facts),
        message: messageIn(facts),
        next: [next.inputs, ...retryOf(facts)],
      })
    : undefined;

export const specInvalid: Rule = (facts) =>
  conditionWith(facts, "SpecInvalid")
    ? decide("specInvalid", {
        summary: summaries.specInvalid(facts),
        message: messageIn(facts),
        next: [next.edit(facts)],
      })
    : undefined;

export const sourceUnavailable: Rule = (facts) => {
  const condition = conditionWith(facts, "SourceUnavailable");
  if (!condition) return undefined;
  const fix = reportsMissingSource(condition.message) ? [next.createSource, next.edit(facts)] : [next.source];
  return decide("sourceUnavailable", {
    summary: summaries.sourceUnavailable(facts),
    message: condition.message,
    next: [...fix, ...retryOf(facts)],
  });
};

export const prerequisite: Rule = (facts) => {
  const condition = conditionWith(facts, "PrerequisiteNotSatisfied");
  if (!condition) return undefined;
  const own = reportsMissingOutput(condition.message)
    ? cause("outputMissing", {
        summary: summaries.outputMissing(facts),
        message: condition.message,
        next: [next.output],
      })
    : cause("prerequisite", {
        summary: summaries.prerequisite(facts),
        message: condition.message,
        next: [next.nothing],
      });
  return { kind: "dependsOn", stacks: [...facts.dependencies.keys()], cause: own };
};

export const outputsLost: Rule = (facts) =>
  conditionWith(facts, "OutputsLost")
    ? decide("outputsLost", {
        summary: summaries.outputsLost(facts),
        message: messageIn(facts),
        next: [next.reconcile(facts)],
      })
    : undefined;
