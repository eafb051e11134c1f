/** The result of a run: its outcome, with the outputs, the pending operations and the end of the CLI's output. */
import type { PendingOperation, RunError, RunResult } from "@pko/rpc";
import { isDriftCheck, isPreview, isStackRemoved } from "../pulumi/operation.ts";
import { readStackState } from "../pulumi/stack-state.ts";
import { truncateName } from "../system/clean-text.ts";
import type { EventLog } from "./event-log.ts";
import type { Followed } from "./follow.ts";
import type { PrintedOutput } from "./printed-output.ts";
import type { RunContext } from "./run-context.ts";
import type { RunFolder, RunRecord } from "./run-folder.ts";

type Outcome = Pick<RunResult, "outcome" | "error" | "plan">;

interface EndedRun {
  readonly record: RunRecord;
  /** The last command; undefined if none was started. */
  readonly followed: Followed | undefined;
}

interface RunResultsOptions {
  readonly folder: RunFolder;
  readonly events: Pick<EventLog, "progress">;
  readonly context: Pick<RunContext, "cli" | "log" | "mayHavePending">;
  readonly output: PrintedOutput;
}

export function failedWith(error: RunError): Outcome {
  const { class: errorClass } = error;
  const outcome = errorClass === "cancelled" || errorClass === "interrupted" ? errorClass : "failed";
  return { outcome, error };
}

export class RunResults {
  readonly #options: RunResultsOptions;

  constructor(options: RunResultsOptions) {
    this.#options = options;
  }

  async create(end: Outcome, run: EndedRun): Promise<RunResult> {
    const { record, followed } = run;
    const { operation, ready, startedAt, launches } = record;
    const names = await this.#storeOutputs(end.outcome, run);
    const pending = await this.#pendingOperations(end.outcome, run);
    return {
      ...end,
      operation: operation.kind,
      stack: ready.stack,
      project: ready.project,
      revision: ready.revision,
      startedAt,
      finishedAt: new Date().toISOString(),
      ...(followed?.end.kind === "exited" && { exitCode: followed.end.code }),
      progress: this.#options.events.progress,
      changes: followed?.changes ?? {},
      ...(pending.length > 0 && { pendingOperations: pending }),
      ...(end.outcome === "succeeded" && followed?.drift && { drift: followed.drift }),
      output: await this.#options.output.forResult(launches.length),
      ...(names && { outputs: names }),
    };
  }

  /** Read only if there may be some, because reading the state of a large stack takes a while. */
  async #pendingOperations(outcome: RunResult["outcome"], run: EndedRun): Promise<PendingOperation[]> {
    const { folder, context } = this.#options;
    const { cli, log, mayHavePending } = context;
    const { operation, ready, launches } = run.record;
    const mayHaveSome = outcome !== "succeeded" || mayHavePending || run.followed?.warnsOfPending;
    if (!mayHaveSome || launches.length === 0 || isPreview(operation) || isStackRemoved(operation)) return [];
    try {
      const { stack, projectFolder, backend } = ready;
      const signedIn = await cli.signIn({ backend, purpose: "command" });
      const query = { cli, stack, folder: projectFolder, file: folder.state };
      const state = signedIn.ok ? await readStackState(query) : undefined;
      if (!state) log.warn("cannot read the pending operations in the state", { run: folder.runId });
      // If this fails, the record has the resources of the events.
      if (state) await folder.writeResources(state.resources).catch(() => undefined);
      return state?.pending ?? [];
    } catch (error) {
      log.warn("cannot read the pending operations in the state", { run: folder.runId, error });
      return [];
    }
  }

  async #storeOutputs(outcome: RunResult["outcome"], run: EndedRun): Promise<RunResult["outputs"]> {
    const { operation } = run.record;
    const known = run.followed?.outputs;
    if (outcome !== "succeeded" || !known || operation.kind === "destroy" || isDriftCheck(operation)) return undefined;
    const { complete, outputs } = known;
    // If this fails, the outputs are read from the CLI.
    await this.#options.folder.writeOutputs({ complete, outputs: [...outputs] }).catch(() => undefined);
    return {
      names: outputs.map(({ name }) => truncateName(name, 1024)).slice(0, 4096),
      secretNames: outputs.flatMap(({ name, secret }) => (secret ? [truncateName(name, 1024)] : [])).slice(0, 4096),
    };
  }
}
