/** All commands, in the order of the help. */
import type { Command } from "../command.ts";
import { approve, reject } from "./approve.ts";
import { cancel } from "./cancel.ts";
import { check } from "./check.ts";
import { completion } from "./completion.ts";
import { diff } from "./diff.ts";
import { drift } from "./drift.ts";
import { eventsCommand } from "./events.ts";
import { get } from "./get.ts";
import { graph } from "./graph.ts";
import { history } from "./history.ts";
import { logs } from "./logs.ts";
import { outputs } from "./outputs.ts";
import { preview } from "./preview.ts";
import { reconcile } from "./reconcile.ts";
import { shell } from "./shell.ts";
import { show } from "./show.ts";
import { supportBundle } from "./support-bundle.ts";
import { resume, suspend } from "./suspend.ts";
import { trace } from "./trace.ts";
import { tree } from "./tree.ts";
import { ui } from "./ui.ts";
import { unlock } from "./unlock.ts";
import { clientVersion } from "./version.ts";
import { watch } from "./watch.ts";
import { why } from "./why.ts";

export const commands: readonly Command[] = [
  get,
  why,
  watch,
  logs,
  eventsCommand,
  history,
  show,
  diff,
  preview,
  outputs,
  tree,
  graph,
  trace,
  ui,
  reconcile,
  cancel,
  suspend,
  resume,
  drift,
  approve,
  reject,
  shell,
  unlock,
  check,
  supportBundle,
  completion,
  clientVersion,
];
