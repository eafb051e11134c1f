/** What a run needs to know about its agent and about earlier runs. */
import type { PulumiCli } from "../pulumi/cli.ts";
import type { Log } from "../system/log.ts";
import type { Launch } from "./run-folder.ts";

export interface RunContext {
  readonly cli: PulumiCli;
  readonly log: Log;
  readonly hostname: string;
  readonly namespace: string | undefined;
  /** Commands of earlier runs of this stack in this pod. */
  readonly earlierLaunches: readonly Launch[];
  /** An earlier run of this stack in this pod found interrupted operations in the state. */
  readonly mayHavePending: boolean;
  readonly graceSeconds: number;
  readonly workspaceUid: string | undefined;
  readonly image?: string | undefined;
  readonly policyPacks?: readonly string[];
  /** False after a restart of the agent until it prepares the workspace, because it keeps secrets only in memory. */
  readonly knowsSecrets: boolean;
}
