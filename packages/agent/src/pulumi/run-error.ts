/** Why a run failed, from all it left behind, in one sentence and the program's own lines. */
import { maxErrorLines, type ErrorClass, type RunError } from "@pko/rpc";
import { lastLines } from "../system/command.ts";
import { bounded } from "./engine-events.ts";
import { classify } from "./explain.ts";

export interface RunRemains {
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  /** Set when the agent stopped it: somebody asked, or the workspace is stopping. */
  readonly cancelled: "asked" | "stopping" | undefined;
  /** The agent lost sight of it: it ended without saying how. */
  readonly lost: boolean;
  readonly errorLines: readonly string[];
  readonly isPolicyViolated: boolean;
  /** The token that the agent signed in with is over by now. */
  readonly hasTokenEnded: boolean;
  /** The end of what it printed, standard output before standard error. */
  readonly printed: string;
}

export function explainRun(remains: RunRemains): RunError {
  const lines = remains.errorLines.length > 0 ? remains.errorLines : printedErrors(remains.printed);
  const { class: errorClass, message } = judge(remains);
  return { class: errorClass, message: bounded(message), lines: lines.slice(0, maxErrorLines).map(bounded) };
}

type Verdict = { readonly class: ErrorClass; readonly message: string };

function judge(remains: RunRemains): Verdict {
  if (remains.cancelled === "asked") return { class: "cancelled", message: "the run was cancelled" };
  if (remains.cancelled === "stopping") {
    return { class: "interrupted", message: "the run was interrupted: its workspace is stopping" };
  }
  if (remains.lost)
    return { class: "interrupted", message: "the run was interrupted: its process died without a result" };
  if (remains.signal !== undefined) {
    const hint = remains.signal === "SIGKILL" ? "; perhaps the workspace ran out of memory" : "";
    return { class: "interrupted", message: `the CLI was ended by ${remains.signal}${hint}` };
  }
  const told = remains.errorLines.join("\n");
  const first = firstSentence(remains.errorLines);
  if (remains.isPolicyViolated)
    return { class: "policyViolation", message: `a mandatory policy is violated: ${first}` };
  const known = classify(told) ?? classify(remains.printed);
  if (known?.class === "invalidToken" && remains.hasTokenEnded) {
    const remedy = "give it more time with oidc.expirationSeconds";
    return { class: "invalidToken", message: `the access token of Pulumi Cloud ended during the run; ${remedy}` };
  }
  if (known) return { class: known.class, message: detailed(known, told || remains.printed) };
  if (remains.errorLines.length > 0) return { class: "programError", message: first };
  const printed = firstSentence(printedErrors(remains.printed));
  return { class: "other", message: printed || `the CLI ended with exit code ${remains.exitCode ?? "unknown"}` };
}

/** The line that says which plugin, which flag, which stack. */
function detailed(known: Verdict, text: string): string {
  const line = text.split("\n").find((candidate) => classify(candidate)?.class === known.class);
  const detail = line?.trim().replace(/^error: /i, "");
  return detail ? `${known.message}: ${detail.slice(0, 600)}` : known.message;
}

function firstSentence(lines: readonly string[]): string {
  const line = lines.find((candidate) => /error/i.test(candidate)) ?? lines[0] ?? "";
  return line
    .trim()
    .replace(/^error: /i, "")
    .slice(0, 1_000);
}

function printedErrors(printed: string): string[] {
  const lines = lastLines(printed, 400);
  const start = lines.findIndex((line) => line.startsWith("error: "));
  return start < 0 ? lines.slice(-maxErrorLines) : lines.slice(start);
}
