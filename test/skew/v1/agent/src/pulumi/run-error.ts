/** Why a run failed, from all it left behind, in one sentence and the program's own lines. */
import { maxErrorLines, type ErrorClass } from "../../../rpc/src/index.ts";
import { bounded, joined, lastLines, linesOf, sentenceOf, told, type Clean } from "../system/clean-text.ts";
import { classify, type Known } from "./explain.ts";

export interface RunRemains {
  readonly exitCode: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
  /** Set when the agent stopped it: somebody asked, or the workspace is stopping. */
  readonly cancelled: "asked" | "stopping" | undefined;
  /** The agent lost sight of it: it ended without saying how. */
  readonly lost: boolean;
  readonly errorLines: readonly Clean[];
  /** What the words mean, judged before their secrets were masked: a secret may look like a word that matters. */
  readonly known?: Known | undefined;
  readonly isPolicyViolated: boolean;
  /** The token that the agent signed in with is over by now. */
  readonly hasTokenEnded: boolean;
  /** The end of what it printed, standard output before standard error. */
  readonly printed: Clean;
}

export interface Explained {
  readonly class: ErrorClass;
  readonly message: Clean;
  readonly lines: readonly Clean[];
}

export function explainRun(remains: RunRemains): Explained {
  const lines = remains.errorLines.length > 0 ? remains.errorLines : printedErrors(remains.printed);
  const { class: errorClass, message } = judge(remains);
  return { class: errorClass, message: bounded(message), lines: lines.slice(0, maxErrorLines).map(bounded) };
}

type Verdict = Omit<Explained, "lines">;

function judge(remains: RunRemains): Verdict {
  if (remains.cancelled === "asked") return { class: "cancelled", message: told`the run was cancelled` };
  if (remains.cancelled === "stopping") {
    return { class: "interrupted", message: told`the run was interrupted: its workspace is stopping` };
  }
  if (remains.lost)
    return { class: "interrupted", message: told`the run was interrupted: its process died without a result` };
  if (remains.signal !== undefined) {
    const hint = remains.signal === "SIGKILL" ? told`; perhaps the workspace ran out of memory` : told``;
    return { class: "interrupted", message: told`the CLI was ended by ${remains.signal}${hint}` };
  }
  const words = joined(remains.errorLines, "\n");
  const first = firstSentence(remains.errorLines);
  if (remains.isPolicyViolated)
    return { class: "policyViolation", message: told`a mandatory policy is violated: ${first}` };
  const known = remains.known ?? classify(words) ?? classify(remains.printed);
  if (known?.class === "invalidToken" && remains.hasTokenEnded) {
    const remedy = told`give it more time with oidc.expirationSeconds`;
    return { class: "invalidToken", message: told`the access token of Pulumi Cloud ended during the run; ${remedy}` };
  }
  if (known) return { class: known.class, message: detailed(known, words || remains.printed) };
  if (remains.errorLines.length > 0) return { class: "programError", message: first };
  const printed = firstSentence(printedErrors(remains.printed));
  return { class: "other", message: printed || endOf(remains) };
}

function endOf({ exitCode }: RunRemains): Clean {
  return told`the CLI ended with exit code ${exitCode ?? told`unknown`}`;
}

/** The line that says which plugin, which flag, which stack. */
function detailed(known: Verdict, text: Clean): Clean {
  const line = linesOf(text).find((candidate) => classify(candidate)?.class === known.class);
  const detail = line && sentenceOf(line, 600);
  return detail ? told`${known.message}: ${detail}` : known.message;
}

function firstSentence(lines: readonly Clean[]): Clean {
  const line = lines.find((candidate) => /error/i.test(candidate)) ?? lines[0] ?? told``;
  return sentenceOf(line, 1_000);
}

function printedErrors(printed: Clean): Clean[] {
  const lines = lastLines(printed, 400);
  const start = lines.findIndex((line) => line.startsWith("error: "));
  return start < 0 ? lines.slice(-maxErrorLines) : lines.slice(start);
}
