/** Explains why a run failed, in one sentence and with the program's error lines. */
import { maxErrorLines, type ErrorClass } from "@pko/rpc";
import {
  bounded,
  joinClean,
  lastLines,
  nonEmptyLines,
  errorSentence,
  cleanText,
  type Clean,
} from "../system/clean-text.ts";
import { classify, type KnownError } from "./explain.ts";

/** On request, because the workspace is stopping, or because the run exceeded a timeout. */
type Cancelled =
  | { readonly by: "requested" | "stopping" }
  | {
      readonly by: "total" | "silence";
      readonly seconds: number;
      /** Set if it did not stop within this grace period. */
      readonly killedAfterSeconds?: number;
    };

export interface RunEnd {
  readonly exitCode: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
  /** Set if the agent stopped the run. */
  readonly cancelled: Cancelled | undefined;
  /** The process ended while no agent was watching, and its exit code is unknown. */
  readonly lost: boolean;
  readonly errorLines: readonly Clean[];
  /** The meaning of the error, classified before secrets were masked, because masking could hide a part that matters. */
  readonly known?: KnownError | undefined;
  readonly isPolicyViolated: boolean;
  /** The access token from signing in has expired. */
  readonly hasTokenExpired: boolean;
  /** The end of the CLI's output, standard output before standard error. */
  readonly printed: Clean;
}

export interface Explained {
  readonly class: ErrorClass;
  readonly message: Clean;
  readonly lines: readonly Clean[];
}

export function explainRun(end: RunEnd): Explained {
  const lines = end.errorLines.length > 0 ? end.errorLines : printedErrors(end.printed);
  const { class: errorClass, message } = classifyEnd(end);
  return { class: errorClass, message: bounded(message), lines: lines.slice(0, maxErrorLines).map(bounded) };
}

type Verdict = Omit<Explained, "lines">;

/** The kernel kills without a reason. */
const memoryHint = cleanText`; the workspace may have run out of memory: raise the memory limit of its container pulumi (in a Stack, workspaceTemplate.spec.resources.limits.memory), or, if it has none, use a node with more memory`;

function classifyEnd(end: RunEnd): Verdict {
  if (end.cancelled) return classifyCancelled(end.cancelled);
  if (end.lost)
    return { class: "interrupted", message: cleanText`the run was interrupted: its process died without a result` };
  if (end.signal !== undefined) {
    const hint = end.signal === "SIGKILL" ? memoryHint : cleanText``;
    return { class: "interrupted", message: cleanText`the CLI was terminated by ${end.signal}${hint}` };
  }
  const errors = joinClean(end.errorLines, "\n");
  const first = firstSentence(end.errorLines);
  if (end.isPolicyViolated)
    return { class: "policyViolation", message: cleanText`a mandatory policy is violated: ${first}` };
  const known = end.known ?? classify(errors) ?? classify(end.printed);
  if (known?.class === "invalidToken" && end.hasTokenExpired) {
    const remedy = cleanText`increase oidc.expirationSeconds`;
    return {
      class: "invalidToken",
      message: cleanText`the Pulumi Cloud access token expired during the run; ${remedy}`,
    };
  }
  if (known) return { class: known.class, message: detailed(known, errors || end.printed) };
  if (end.errorLines.length > 0) return { class: "programError", message: first };
  const printed = firstSentence(printedErrors(end.printed));
  return { class: "other", message: printed || exitMessage(end) };
}

function classifyCancelled(cancelled: Cancelled): Verdict {
  switch (cancelled.by) {
    case "requested":
      return { class: "cancelled", message: cleanText`the run was cancelled` };
    case "stopping":
      return { class: "interrupted", message: cleanText`the run was interrupted, because its workspace is stopping` };
    case "total":
    case "silence":
      return { class: "timedOut", message: timeoutMessage(cancelled) };
  }
}

function timeoutMessage({ by, seconds, killedAfterSeconds }: Extract<Cancelled, { seconds: number }>): Clean {
  const why =
    by === "total"
      ? cleanText`because it exceeded its timeout of ${seconds} s`
      : cleanText`after ${seconds} s without output`;
  if (killedAfterSeconds === undefined) return cleanText`the run was stopped ${why}`;
  return cleanText`the run was cancelled ${why}, did not stop within the grace period of ${killedAfterSeconds} s, and was killed`;
}

function exitMessage({ exitCode }: RunEnd): Clean {
  return cleanText`the CLI exited with code ${exitCode ?? cleanText`unknown`}`;
}

/** Adds the line that names the plugin, the flag or the stack. */
function detailed(known: Verdict, text: Clean): Clean {
  const line = nonEmptyLines(text).find((candidate) => classify(candidate)?.class === known.class);
  const detail = line && errorSentence(line, 600);
  return detail ? cleanText`${known.message}: ${detail}` : known.message;
}

function firstSentence(lines: readonly Clean[]): Clean {
  return errorSentence(firstError(lines.filter(isReason)) ?? firstError(lines) ?? cleanText``, 1_000);
}

const firstError = (lines: readonly Clean[]): Clean | undefined =>
  lines.find((candidate) => /error/i.test(candidate)) ?? lines[0];

/** Pulumi YAML reports an invalid configuration value twice: first without diagnostics, then with the reason. */
const isReason = (line: Clean): boolean => !/^\s*warning:|: no diagnostics\s*$/i.test(line);

function printedErrors(printed: Clean): Clean[] {
  const lines = lastLines(printed, 400);
  const start = lines.findIndex((line) => line.startsWith("error: "));
  return start < 0 ? lines.slice(-maxErrorLines) : lines.slice(start);
}
