/**
 * What a version of the contract can say in its answers, and how an answer with words beyond that is read.
 *
 * Both ends use it: an operator reads what a newer agent says in the words that it knows, and an agent answers an older
 * operator in the words of that operator's version. Only closed sets matter: unknown fields are ignored anyway.
 */
import type { TSchema } from "typebox";
import { Check } from "typebox/value";
import { AgentErrorCode } from "./errors.ts";
import { PreparePhase, PrepareReason } from "./prepare.ts";
import { CancelResult, ErrorClass, RunEvent, RunResult, StartResult } from "./run.ts";

export interface Vocabulary {
  readonly event: TSchema;
  readonly startState: TSchema;
  readonly cancelState: TSchema;
  readonly outcome: TSchema;
  readonly operation: TSchema;
  readonly errorClass: TSchema;
  readonly preparePhase: TSchema;
  readonly prepareReason: TSchema;
  readonly errorCode: TSchema;
}

export const vocabulary: Vocabulary = {
  event: RunEvent,
  startState: StartResult.properties.state,
  cancelState: CancelResult.properties.state,
  outcome: RunResult.properties.outcome,
  operation: RunResult.properties.operation,
  errorClass: ErrorClass,
  preparePhase: PreparePhase,
  prepareReason: PrepareReason,
  errorCode: AgentErrorCode,
};

/** An answer, or a message of a stream; `skipped` is one that means nothing to this version. */
export type Fitted =
  { readonly kind: "known"; readonly value: unknown } | { readonly kind: "skipped"; readonly seq?: number };

type Fit = (value: Fields, words: Vocabulary) => Fitted;
type Fields = Readonly<Record<string, unknown>>;

const known = (value: unknown): Fitted => ({ kind: "known", value });
const skipped: Fitted = { kind: "skipped" };

const fits: Readonly<Record<string, Fit>> = {
  start: fitStart,
  cancel: (answer, words) => known(withWord(answer, "state", { set: words.cancelState, otherwise: "cancelling" })),
  prepare: fitPrepare,
  watch: fitWatch,
  outputs: (message) => (message["type"] === "output" || message["type"] === "end" ? known(message) : skipped),
};

/** What `method` answered, in the words of a version. What is no answer at all is left for the check that follows. */
export function fitAnswer(method: string, value: unknown, words: Vocabulary): Fitted {
  const fit = fits[method];
  return fit && isFields(value) ? fit(value, words) : known(value);
}

/** An error that the version does not know is taken for one that may pass: by its HTTP status, for the agent or its command. */
export function fitError(error: unknown, words: Vocabulary, status = 500): unknown {
  if (!isFields(error) || typeof error["code"] !== "string") return error;
  return withWord(error, "code", { set: words.errorCode, otherwise: status >= 500 ? "internal" : "failed" });
}

function fitStart(answer: Fields, words: Vocabulary): Fitted {
  const { result } = answer;
  const otherwise = result === undefined ? "running" : "finished";
  const fitted = withWord(answer, "state", { set: words.startState, otherwise });
  return known(result === undefined ? fitted : { ...fitted, result: fitResult(result, words) });
}

function fitWatch(message: Fields, words: Vocabulary): Fitted {
  switch (message["type"]) {
    case "event": {
      const { seq, event } = message;
      return Check(words.event, event) || typeof seq !== "number" ? known(message) : { kind: "skipped", seq };
    }
    case "progress":
      return known(message);
    case "result":
      return known({ ...message, result: fitResult(message["result"], words) });
    default:
      return skipped;
  }
}

function fitPrepare(message: Fields, words: Vocabulary): Fitted {
  switch (message["type"]) {
    case "phase":
      return Check(words.preparePhase, message["phase"]) ? known(message) : skipped;
    case "done": {
      const result = message["result"];
      if (!isFields(result) || !isFields(result["failure"])) return known(message);
      const failure = withWord(
        withWord(result["failure"], "reason", { set: words.prepareReason, otherwise: "other" }),
        "phase",
        { set: words.preparePhase, otherwise: "source" },
      );
      return known({ ...message, result: { ...result, failure } });
    }
    default:
      return skipped;
  }
}

function fitResult(result: unknown, words: Vocabulary): unknown {
  if (!isFields(result)) return result;
  const fitted = withWord(
    withWord(result, "outcome", { set: words.outcome, otherwise: "failed" }),
    // The operator knows what it asked for.
    "operation",
    { set: words.operation, otherwise: "up" },
  );
  const { error } = fitted;
  if (!isFields(error)) return fitted;
  return { ...fitted, error: withWord(error, "class", { set: words.errorClass, otherwise: "other" }) };
}

interface Words {
  readonly set: TSchema;
  readonly otherwise: string;
}

function withWord(value: Fields, field: string, { set, otherwise }: Words): Fields {
  return typeof value[field] !== "string" || Check(set, value[field]) ? value : { ...value, [field]: otherwise };
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
