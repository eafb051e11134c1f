/** All scenarios in order. */
import { calls } from "./calls.ts";
import { cli } from "./cli.ts";
import { commit } from "./commit.ts";
import { webConsole } from "./console.ts";
import { cost } from "./cost.ts";
import { crowd } from "./crowd.ts";
import { git } from "./git.ts";
import { held } from "./held.ts";
import { idle } from "./idle.ts";
import { installed } from "./installed.ts";
import { life } from "./life.ts";
import { push } from "./push.ts";
import { scale } from "./scale.ts";
import type { Scenario, StandaloneScenario } from "./scenario.ts";

export const scenarios: readonly (Scenario | StandaloneScenario)[] = [
  installed,
  life,
  calls,
  cost,
  commit,
  git,
  webConsole,
  cli,
  crowd,
  held,
  idle,
  push,
  scale,
];
