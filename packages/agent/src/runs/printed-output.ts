/**
 * What the CLI prints in a run: the original text, which is only classified, and the part that may be shown, in which
 * secrets are masked.
 */
import { maxOutputTailChars, type Operation, type RunResult } from "@pko/rpc";
import { withoutPlanValues } from "../plans/refusal.ts";
import { withoutFieldWarning } from "../pulumi/field-warning.ts";
import { isLogShown } from "../pulumi/operation.ts";
import { cleanText, joinClean, lastChars, type Clean } from "../system/clean-text.ts";
import { readTail, type Tail } from "../system/files.ts";
import { withoutColors } from "../system/redact.ts";
import type { Shows } from "./follow.ts";
import type { RunContext } from "./run-context.ts";
import type { RunFolder, RunRecord } from "./run-folder.ts";
import { appliedDigest } from "./run-plan.ts";

const tailBytes = 256 * 1024;

/** The end of what a command printed, standard output before standard error. Empty if no command was started. */
export type Printed = readonly Tail[];

export class PrintedOutput {
  readonly shows: Shows;
  readonly #folder: RunFolder;
  readonly #record: Pick<RunRecord, "operation" | "ready">;
  readonly #context: Pick<RunContext, "cli" | "log" | "knowsSecrets">;

  constructor(
    folder: RunFolder,
    record: Pick<RunRecord, "operation" | "ready">,
    context: Pick<RunContext, "cli" | "log" | "knowsSecrets">,
  ) {
    this.#folder = folder;
    this.#record = record;
    this.#context = context;
    this.shows = shownPart(record.operation, context.knowsSecrets);
  }

  async read(launch: number): Promise<Printed> {
    if (launch < 0) return [];
    const files = [this.#folder.stdout(launch), this.#folder.stderr(launch)];
    return await Promise.all(files.map((file) => readTail(file, tailBytes)));
  }

  /** Masks secrets. */
  clean(text: string): Clean {
    return this.#context.cli.redactor.clean(this.#withoutValues(text));
  }

  visibleErrors(lines: readonly Clean[]): readonly Clean[] {
    return this.shows === "nothing" && lines.length > 0 ? [this.#withheld] : lines;
  }

  visiblePart([stdout, stderr]: Printed): Clean {
    if (!stdout || !stderr) return cleanText``;
    switch (this.shows) {
      case "everything":
        return this.#cleanAll([stdout, stderr], "\n");
      case "output":
        return this.#cleanAll([stdout, errorsOnly(stderr)], "\n");
      case "nothing":
        return this.#withheld;
    }
  }

  /** The standard output of all commands. If it cannot be read, the result has none. */
  async forResult(launches: number): Promise<RunResult["output"]> {
    try {
      const files = Array.from({ length: launches }, (_, launch) => this.#folder.stdout(launch));
      const parts = await Promise.all(files.map((file) => readTail(file, tailBytes)));
      const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
      if (this.shows === "nothing") return { tail: this.#withheld, bytes, truncated: true };
      const text = this.#cleanAll(parts, "");
      const tail = lastChars(text, maxOutputTailChars);
      return { tail, bytes, truncated: tail.length < text.length || parts.some((part) => part.isCutAtStart) };
    } catch (error) {
      this.#context.log.warn("cannot read the output", { run: this.#folder.runId, error });
      return { tail: "", bytes: 0, truncated: true };
    }
  }

  /** Logs where users find output that is not in the pod's log. */
  logHiddenFile(launch: number): void {
    const { log } = this.#context;
    const run = this.#folder.runId;
    if (this.shows === "output") {
      log.info("verbose log is in a file in the pod", { run, file: this.#folder.stderr(launch) });
    } else if (this.shows === "nothing") {
      const reason = "the agent was restarted and does not know all secrets that it should mask";
      log.info("output is in a file in the pod", { run, file: this.#folder.stdout(launch), reason });
    }
  }

  /** Replaces output in which secrets cannot be masked. */
  get #withheld(): Clean {
    const folder = this.clean(this.#folder.path);
    return cleanText`the output is not shown, because the workspace's agent was restarted and does not know all secrets that it should mask; read it with kubectl exec in the pod's folder ${folder}`;
  }

  #cleanAll(parts: readonly Tail[], separator: string): Clean {
    return joinClean(
      parts.map((part) => this.#context.cli.redactor.clean({ ...part, text: this.#relevant(part.text) })),
      separator,
    );
  }

  #relevant(text: string): string {
    const shown = this.#withoutValues(text);
    return this.#record.ready.isProgram ? withoutFieldWarning(shown) : shown;
  }

  /** If the CLI refuses a plan, it prints values that the redactor does not know. */
  #withoutValues(text: string): string {
    return appliedDigest(this.#record.operation) === undefined ? text : withoutPlanValues(text);
  }
}

function shownPart(operation: Operation, knowsSecrets: boolean): Shows {
  if (!knowsSecrets) return "nothing";
  return isLogShown(operation) ? "everything" : "output";
}

/** The CLI's own errors, without the verbose log. A truncated first line belongs to that log. */
function errorsOnly({ text, bytes, isCutAtStart }: Tail): Tail {
  const lines = withoutColors(text).split("\n");
  const errors = lines.slice(isCutAtStart ? 1 : 0).filter((line) => line.startsWith("error: "));
  return { text: errors.join("\n"), bytes, isCutAtStart: false };
}

/** Unmasked text, only for classification. */
export function rawText(parts: Printed): string {
  return withoutColors(parts.map(({ text }) => text).join("\n"));
}
