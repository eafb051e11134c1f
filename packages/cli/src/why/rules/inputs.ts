/** Rules about the spec, its inputs, the source and other Stacks. */
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
  conditionWith(facts, "SpecInvalid")?.message.includes("Stacks depend on each other")
    ? decide("dependencyCycle", {
        summary: summaries.dependencyCycle,
        message: messageIn(facts),
        next: [next.cycle, next.edit(facts)],
      })
    : undefined;

const missingInput = /there is no (?:Secret|ConfigMap) |has no key .+, which |is not valid JSON, which /;

export const inputMissing: Rule = (facts) =>
  missingInput.test(conditionWith(facts, "SpecInvalid", "WorkspaceFailed")?.message ?? "")
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

export const sourceUnavailable: Rule = (facts) =>
  conditionWith(facts, "SourceUnavailable")
    ? decide("sourceUnavailable", {
        summary: summaries.sourceUnavailable(facts),
        message: messageIn(facts),
        next: [next.source, ...retryOf(facts)],
      })
    : undefined;

export const prerequisite: Rule = (facts) => {
  const condition = conditionWith(facts, "PrerequisiteNotSatisfied");
  if (!condition) return undefined;
  const isOutput = / has no output /.test(condition.message);
  const own = isOutput
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
