/**
 * The enum values and events that a version of the protocol knows, and how answers with unknown ones are translated.
 *
 * Both sides use it: an operator maps the values of a newer agent to known ones, and an agent maps its answers to the
 * values of an older operator's version. Only closed sets matter, because unknown fields are ignored anyway.
 */
import type { TSchema } from "typebox";
import { Check } from "typebox/value";
import { RunEvent } from "@pko/records";
import { AgentErrorCode } from "../errors.ts";
import { PreparePhase, PrepareReason } from "../prepare.ts";
import { CancelResult, ErrorClass, RunResult, StartResult } from "../run.ts";
import { isRecord } from "../json/is-record.ts";

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

export const currentVocabulary: Vocabulary = {
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

/** An answer or a stream's message; `skipped` is one that this version does not know. */
export type Translation =
  { readonly kind: "known"; readonly value: unknown } | { readonly kind: "skipped"; readonly seq?: number };

type Translate = (value: Fields, vocabulary: Vocabulary) => Translation;
type Fields = Readonly<Record<string, unknown>>;

const known = (value: unknown): Translation => ({ kind: "known", value });
const skipped: Translation = { kind: "skipped" };

const translations: Readonly<Record<string, Translate>> = {
  start: translateStart,
  cancel: (answer, vocabulary) =>
    known(withKnown(answer, "state", { set: vocabulary.cancelState, otherwise: "cancelling" })),
  prepare: translatePrepare,
  watch: translateWatch,
  plan: (message) => (message["type"] === "part" || message["type"] === "end" ? known(message) : skipped),
  outputs: (message) => (message["type"] === "output" || message["type"] === "end" ? known(message) : skipped),
};

/** Translates the answer of `method` to a version's vocabulary. The caller's schema check rejects malformed answers. */
export function translateAnswer(method: string, value: unknown, vocabulary: Vocabulary): Translation {
  const translate = translations[method];
  return translate && isRecord(value) ? translate(value, vocabulary) : known(value);
}

/** Translates an unknown error code to a retryable one, chosen by the HTTP status. */
export function translateError(error: unknown, vocabulary: Vocabulary, status = 500): unknown {
  if (!isRecord(error) || typeof error["code"] !== "string") return error;
  return withKnown(error, "code", { set: vocabulary.errorCode, otherwise: status >= 500 ? "internal" : "failed" });
}

function translateStart(answer: Fields, vocabulary: Vocabulary): Translation {
  const { result } = answer;
  const otherwise = result === undefined ? "running" : "finished";
  const translated = withKnown(answer, "state", { set: vocabulary.startState, otherwise });
  return known(result === undefined ? translated : { ...translated, result: translateResult(result, vocabulary) });
}

function translateWatch(message: Fields, vocabulary: Vocabulary): Translation {
  switch (message["type"]) {
    case "event": {
      const { seq, event } = message;
      return Check(vocabulary.event, event) || typeof seq !== "number" ? known(message) : { kind: "skipped", seq };
    }
    case "progress":
      return known(message);
    case "result":
      return known({ ...message, result: translateResult(message["result"], vocabulary) });
    default:
      return skipped;
  }
}

function translatePrepare(message: Fields, vocabulary: Vocabulary): Translation {
  switch (message["type"]) {
    case "phase":
      return Check(vocabulary.preparePhase, message["phase"]) ? known(message) : skipped;
    case "done": {
      const result = message["result"];
      if (!isRecord(result) || !isRecord(result["failure"])) return known(message);
      const failure = withKnown(
        withKnown(result["failure"], "reason", { set: vocabulary.prepareReason, otherwise: "other" }),
        "phase",
        { set: vocabulary.preparePhase, otherwise: "source" },
      );
      return known({ ...message, result: { ...result, failure } });
    }
    default:
      return skipped;
  }
}

function translateResult(result: unknown, vocabulary: Vocabulary): unknown {
  if (!isRecord(result)) return result;
  const translated = withKnown(
    withKnown(result, "outcome", { set: vocabulary.outcome, otherwise: "failed" }),
    // The value does not matter: the operator knows which operation it requested.
    "operation",
    { set: vocabulary.operation, otherwise: "up" },
  );
  const { error } = translated;
  if (!isRecord(error)) return translated;
  return { ...translated, error: withKnown(error, "class", { set: vocabulary.errorClass, otherwise: "other" }) };
}

interface ApiObject {
  readonly set: TSchema;
  readonly otherwise: string;
}

function withKnown(value: Fields, field: string, { set, otherwise }: ApiObject): Fields {
  return typeof value[field] !== "string" || Check(set, value[field]) ? value : { ...value, [field]: otherwise };
}
