import { describe, expect, test } from "bun:test";
import { fitAnswer, fitError, vocabulary, type Fitted } from "./vocabulary.ts";

const known = (value: unknown): Fitted => ({ kind: "known", value });

describe("an answer of a newer version", () => {
  const cases: Record<string, { readonly method: string; readonly value: unknown; readonly fitted: Fitted }> = {
    "an event of a known kind is kept": {
      method: "watch",
      value: { type: "event", seq: 4, event: { kind: "notice", message: "x" } },
      fitted: known({ type: "event", seq: 4, event: { kind: "notice", message: "x" } }),
    },
    "an event of an unknown kind is skipped by its number": {
      method: "watch",
      value: { type: "event", seq: 4, event: { kind: "forecast" } },
      fitted: { kind: "skipped", seq: 4 },
    },
    "an event of an unknown phase is skipped by its number": {
      method: "watch",
      value: { type: "event", seq: 5, event: { kind: "resource", phase: "paused", op: "", urn: "", resourceType: "" } },
      fitted: { kind: "skipped", seq: 5 },
    },
    "an event without a number is left to the check": {
      method: "watch",
      value: { type: "event", seq: "4", event: { kind: "forecast" } },
      fitted: known({ type: "event", seq: "4", event: { kind: "forecast" } }),
    },
    "an unknown message of a watch is skipped": {
      method: "watch",
      value: { type: "estimate", seq: 9 },
      fitted: { kind: "skipped" },
    },
    "an unknown outcome is a failure of unknown class": {
      method: "watch",
      value: { type: "result", seq: 9, result: { outcome: "paused", operation: "import", error: { class: "quota" } } },
      fitted: known({
        type: "result",
        seq: 9,
        result: { outcome: "failed", operation: "up", error: { class: "other" } },
      }),
    },
    "a finished run that is started again has a known class too": {
      method: "start",
      value: { state: "finished", result: { outcome: "failed", error: { class: "quota" } } },
      fitted: known({ state: "finished", result: { outcome: "failed", error: { class: "other" } } }),
    },
    "a run in an unknown state runs": {
      method: "start",
      value: { state: "queued", lastSeq: 0 },
      fitted: known({ state: "running", lastSeq: 0 }),
    },
    "a cancellation in an unknown state is heard": {
      method: "cancel",
      value: { state: "draining" },
      fitted: known({ state: "cancelling" }),
    },
    "an unknown phase of preparing is skipped": {
      method: "prepare",
      value: { type: "phase", phase: "verify" },
      fitted: { kind: "skipped" },
    },
    "an unknown reason of preparing is another one": {
      method: "prepare",
      value: { type: "done", result: { ok: false, failure: { phase: "verify", reason: "unsigned", message: "x" } } },
      fitted: known({
        type: "done",
        result: { ok: false, failure: { phase: "source", reason: "other", message: "x" } },
      }),
    },
    "an unknown message beside outputs is skipped": {
      method: "outputs",
      value: { type: "schema" },
      fitted: { kind: "skipped" },
    },
    "what is no answer at all is left to the check": { method: "watch", value: 7, fitted: known(7) },
  };
  for (const [name, { method, value, fitted }] of Object.entries(cases)) {
    test(name, () => expect(fitAnswer(method, value, vocabulary)).toEqual(fitted));
  }
});

describe("an error of a newer version may pass", () => {
  const cases: readonly (readonly [code: string, status: number, read: string])[] = [
    ["busy", 409, "busy"],
    ["quotaExceeded", 429, "failed"],
    // Not "notFound", which would end the Update: the run may well be there.
    ["archived", 404, "failed"],
    ["degraded", 503, "internal"],
  ];
  for (const [code, status, read] of cases) {
    test(`${code} with status ${status} is ${read}`, () => {
      expect(fitError({ code, message: "x" }, vocabulary, status)).toEqual({ code: read, message: "x" });
    });
  }
});
