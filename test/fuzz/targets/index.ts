/** Everything that is fuzzed. */
import type { Target } from "../engine/target.ts";
import { consoleTarget } from "./console.ts";
import { engineEventsTarget } from "./engine-events.ts";
import { envFileTarget } from "./env-file.ts";
import { forgesTarget } from "./forges.ts";
import { gitPacketsTarget } from "./git-packets.ts";
import { gitPacksTarget } from "./git-packs.ts";
import { gitTreesTarget } from "./git-trees.ts";
import { logLinesTarget } from "./log-lines.ts";
import { plansTarget } from "./plans.ts";
import { projectsTarget } from "./projects.ts";
import { repositoriesTarget } from "./repositories.ts";
import { rpcTarget } from "./rpc.ts";
import { secretsTarget } from "./secrets.ts";
import { stacksTarget } from "./stacks.ts";
import { untarGzipTarget } from "./untar-gzip.ts";
import { untarTarget } from "./untar.ts";
import { watchLinesTarget } from "./watch-lines.ts";
import { webhooksTarget } from "./webhooks.ts";

export const targets: readonly Target[] = [
  consoleTarget,
  engineEventsTarget,
  envFileTarget,
  forgesTarget,
  gitPacketsTarget,
  gitPacksTarget,
  gitTreesTarget,
  logLinesTarget,
  plansTarget,
  projectsTarget,
  repositoriesTarget,
  rpcTarget,
  secretsTarget,
  stacksTarget,
  untarTarget,
  untarGzipTarget,
  watchLinesTarget,
  webhooksTarget,
];
