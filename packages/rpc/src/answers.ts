/** Reads what agents send. A workspace runs programs of tenants, so that may be anything. Pure. */
import type { Static, TSchema } from "typebox";
import { ErrorBody, Frame } from "./contract.ts";
import { AgentError, type CallError } from "./errors.ts";
import { checkValue, parseJson, readJson } from "./json/check.ts";
import { currentVocabulary, translateAnswer, translateError } from "./versions/vocabulary.ts";

export interface Call<A extends TSchema> {
  readonly name: string;
  readonly answer: A;
}

export function readAnswer<A extends TSchema>(call: Call<A>, text: string): ReturnType<typeof parseJson<A>> {
  const json = readJson(text);
  if (!json.ok) return json;
  const translated = translateAnswer(call.name, json.value, currentVocabulary);
  return checkValue(call.answer, translated.kind === "known" ? translated.value : json.value);
}

/** A stream's messages. The last item is `ended`, with the error if there was one. */
export type StreamItem<M> =
  | { readonly type: "message"; readonly message: M }
  | { readonly type: "alive" }
  /** A message that this version does not understand. */
  | { readonly type: "skipped"; readonly seq?: number }
  | { readonly type: "ended"; readonly error?: CallError };

export interface Stream<M extends TSchema> {
  readonly name: string;
  readonly message: M;
}

export function readFrame<M extends TSchema>(stream: Stream<M>, line: string): StreamItem<Static<M>> {
  const frame = parseJson(Frame, line);
  if (!frame.ok) return invalidFrame(stream.name, frame.problem);
  switch (frame.value.frame) {
    case "message": {
      const translated = translateAnswer(stream.name, frame.value.message, currentVocabulary);
      if (translated.kind === "skipped")
        return { type: "skipped", ...(translated.seq !== undefined && { seq: translated.seq }) };
      const message = checkValue(stream.message, translated.value);
      return message.ok ? { type: "message", message: message.value } : invalidFrame(stream.name, message.problem);
    }
    case "heartbeat":
      return { type: "alive" };
    case "error": {
      const error = checkValue(AgentError, translateError(frame.value.error, currentVocabulary));
      return error.ok ? { type: "ended", error: error.value } : invalidFrame(stream.name, error.problem);
    }
    case "end":
      return { type: "ended" };
  }
}

function invalidFrame(name: string, problem: string): { readonly type: "ended"; readonly error: CallError } {
  return {
    type: "ended",
    error: { code: "protocol", message: `a frame of ${name} violates the contract: ${problem}` },
  };
}

export function readError(method: string, status: number, text: string): CallError {
  const body = parseJson(ErrorBody, text);
  const error = body.ok ? checkValue(AgentError, translateError(body.value.error, currentVocabulary, status)) : body;
  if (error.ok) return error.value;
  if (status === 413) return { code: "tooLarge", message: `the request ${method} is too large` };
  return { code: "protocol", message: `the agent answered ${method} with status ${status} and no error` };
}
