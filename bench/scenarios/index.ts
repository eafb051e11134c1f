/** All scenarios, in the order in which they are run. */
import { life } from "./life.ts";
import type { Scenario } from "./scenario.ts";

export const scenarios: readonly Scenario[] = [life];
