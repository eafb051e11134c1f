/** The scenarios that ONLY and AGAINST choose. */
import { UserError } from "@pko/cluster";

import type { Options } from "./options.ts";
import { isStandalone, type ChosenScenario } from "./run.ts";
import { scenarios } from "./scenarios/index.ts";

export function chosenScenarios({ only, against }: Pick<Options, "only" | "against">): readonly ChosenScenario[] {
  rejectUnknown(only);
  const chosen = scenarios.filter(({ name }) => only.length === 0 || only.includes(name));
  if (against === undefined) return chosen;
  const compared = chosen.filter((scenario) => !isStandalone(scenario));
  // Without ONLY, AGAINST means everything that can be compared.
  if (only.length > 0 && compared.length < chosen.length) throw notComparable(chosen.filter(isStandalone));
  return compared;
}

function rejectUnknown(only: readonly string[]): void {
  const unknown = only.filter((name) => !scenarios.some((scenario) => scenario.name === name));
  if (unknown.length === 0) return;
  throw new UserError([`there is no scenario ${unknown.join(", ")} (ONLY): choose from ${namesOf(scenarios)}`]);
}

function notComparable(standalone: readonly ChosenScenario[]): UserError {
  const comparable = namesOf(scenarios.filter((scenario) => !isStandalone(scenario)));
  return new UserError([
    `ONLY names ${namesOf(standalone)}, which AGAINST cannot compare, because no installed operator is measured: remove AGAINST, or choose from ${comparable}`,
  ]);
}

const namesOf = (list: readonly ChosenScenario[]): string => list.map(({ name }) => name).join(", ");
