/** Why a run failed or was cancelled: gathers what is known about its end, and explains it to users. */
import { join } from "node:path";
import type { RunError } from "@pko/rpc";
import { classify } from "../pulumi/explain.ts";
import { describeLocks, parseLockReport } from "../pulumi/locks.ts";
import { quoteProgram } from "../pulumi/program-lines.ts";
import { explainRun, type Explained, type RunEnd } from "../pulumi/run-error.ts";
import { bounded, cleanText } from "../system/clean-text.ts";
import { readIfExists } from "../system/files.ts";
import type { EventLog } from "./event-log.ts";
import type { Followed } from "./follow.ts";
import { rawText, type Printed, type PrintedOutput } from "./printed-output.ts";
import type { RunContext } from "./run-context.ts";
import type { RunRecord } from "./run-folder.ts";
import type { RunPlan } from "./run-plan.ts";

interface FailedRun {
  readonly record: RunRecord;
  /** The command that failed; undefined if it was not started. */
  readonly followed: Followed | undefined;
  /** The grace period after which the command was killed. */
  readonly killedAfterSeconds: number | undefined;
}

interface RunFailuresOptions {
  readonly context: Pick<RunContext, "cli" | "hostname" | "namespace">;
  readonly events: Pick<EventLog, "progress">;
  readonly output: PrintedOutput;
  readonly plan: RunPlan;
}

const unlistedMessage = cleanText`the stack does not exist, and the operator creates only stacks that the Workspace lists with create: true; add it to the Workspace's spec.stacks, or create it with \`pulumi stack init\``;

export class RunFailures {
  readonly #options: RunFailuresOptions;

  constructor(options: RunFailuresOptions) {
    this.#options = options;
  }

  async explain(failed: FailedRun): Promise<RunError> {
    const { record, followed } = failed;
    const printed = await this.#options.output.read(followed ? record.launches.length - 1 : -1);
    return this.#refusedPlan(failed, printed) ?? (await this.#explainEnd(failed, printed));
  }

  /** Undefined if the plan is not the reason for the failure. */
  #refusedPlan({ record, followed }: FailedRun, printed: Printed): RunError | undefined {
    if (!followed || record.cancelled) return undefined;
    const { plan, events } = this.#options;
    return plan.explain(followed, rawText(printed), events.progress);
  }

  async #explainEnd(failed: FailedRun, printed: Printed): Promise<RunError> {
    const { cli } = this.#options.context;
    const { record } = failed;
    const error = explainRun(this.#endOf(failed, printed));
    if (error.class === "invalidToken") cli.signOut();
    const isUnlisted = error.class === "stackNotFound" && record.ready.unlisted === true;
    const explained = isUnlisted ? { ...error, message: unlistedMessage } : error;
    return await this.#quoteProgram(record, this.#describeLocks(record, explained, rawText(printed)));
  }

  #endOf(failed: FailedRun, printed: Printed): RunEnd {
    const { context, output } = this.#options;
    const { followed } = failed;
    const end = followed?.end;
    return {
      exitCode: end?.kind === "exited" ? end.code : undefined,
      signal: end?.kind === "signalled" ? end.signal : undefined,
      cancelled: cancellationOf(failed),
      lost: followed !== undefined && isLost(followed),
      errorLines: output.visibleErrors(followed?.errorLines ?? []),
      // Classify the original text, because masking a secret could hide a part that matters.
      known: followed?.known ?? classify(rawText(printed)),
      isPolicyViolated: followed?.isPolicyViolated ?? false,
      hasTokenExpired: context.cli.hasTokenExpired,
      printed: output.visiblePart(printed),
    };
  }

  #describeLocks({ ready }: RunRecord, error: Explained, printed: string): Explained {
    const report = error.class === "conflict" ? parseLockReport(printed) : undefined;
    if (!report) return error;
    const { context, output } = this.#options;
    const at = { pod: context.hostname, namespace: context.namespace, stack: ready.stack };
    return { ...error, message: bounded(output.clean(describeLocks(report, at))) };
  }

  async #quoteProgram({ ready }: RunRecord, { class: errorClass, message, lines }: Explained): Promise<RunError> {
    const { project, projectFolder } = ready;
    if (project.runtime !== "yaml") return { class: errorClass, message, lines: [...lines] };
    const program = this.#options.output.clean((await readIfExists(join(projectFolder, "Pulumi.yaml"))) ?? "");
    const [first = message, ...rest] = quoteProgram([message, ...lines], program).map(bounded);
    return { class: errorClass, message: first, lines: rest };
  }
}

function cancellationOf({ record, killedAfterSeconds }: FailedRun): RunEnd["cancelled"] {
  const { cancelled, timeouts } = record;
  if (cancelled === undefined) return undefined;
  const killed = killedAfterSeconds !== undefined && { killedAfterSeconds };
  switch (cancelled) {
    case "asked":
      return { by: "requested" };
    case "stopping":
      return { by: cancelled };
    case "total":
      return { by: cancelled, seconds: timeouts?.totalSeconds ?? 0, ...killed };
    case "silence":
      return { by: cancelled, seconds: timeouts?.silenceSeconds ?? 0, ...killed };
  }
}

function isLost({ end, summary }: Followed): boolean {
  return end.kind === "unseen" && summary === undefined;
}
