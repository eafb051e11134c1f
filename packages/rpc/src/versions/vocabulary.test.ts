import { describe, expect, test } from "bun:test";
import { currentVocabulary, translateAnswer, translateError, type Translation } from "./vocabulary.ts";

const known = (value: unknown): Translation => ({ kind: "known", value });

describe("an answer from a newer version", () => {
  const cases: Record<string, { readonly method: string; readonly value: unknown; readonly translated: Translation }> =
    {
      "an event of a known kind is kept": {
        method: "watch",
        value: { type: "event", seq: 4, event: { kind: "notice", message: "x" } },
        translated: known({ type: "event", seq: 4, event: { kind: "notice", message: "x" } }),
      },
      "an event of an unknown kind is skipped, with its number": {
        method: "watch",
        value: { type: "event", seq: 4, event: { kind: "forecast" } },
        translated: { kind: "skipped", seq: 4 },
      },
      "an event of an unknown phase is skipped, with its number": {
        method: "watch",
        value: {
          type: "event",
          seq: 5,
          event: { kind: "resource", phase: "paused", op: "", urn: "", resourceType: "" },
        },
        translated: { kind: "skipped", seq: 5 },
      },
      "an event without a number is left to the schema check": {
        method: "watch",
        value: { type: "event", seq: "4", event: { kind: "forecast" } },
        translated: known({ type: "event", seq: "4", event: { kind: "forecast" } }),
      },
      "an unknown message of a watch is skipped": {
        method: "watch",
        value: { type: "estimate", seq: 9 },
        translated: { kind: "skipped" },
      },
      "an unknown outcome is a failure of unknown class": {
        method: "watch",
        value: {
          type: "result",
          seq: 9,
          result: { outcome: "paused", operation: "import", error: { class: "quota" } },
        },
        translated: known({
          type: "result",
          seq: 9,
          result: { outcome: "failed", operation: "up", error: { class: "other" } },
        }),
      },
      "an unknown class of a finished run becomes other": {
        method: "start",
        value: { state: "finished", result: { outcome: "failed", error: { class: "quota" } } },
        translated: known({ state: "finished", result: { outcome: "failed", error: { class: "other" } } }),
      },
      "an unknown state of a run becomes running": {
        method: "start",
        value: { state: "queued", lastSeq: 0 },
        translated: known({ state: "running", lastSeq: 0 }),
      },
      "an unknown state of a cancellation becomes cancelling": {
        method: "cancel",
        value: { state: "draining" },
        translated: known({ state: "cancelling" }),
      },
      "an unknown phase of preparing is skipped": {
        method: "prepare",
        value: { type: "phase", phase: "verify" },
        translated: { kind: "skipped" },
      },
      "an unknown reason of preparing becomes other": {
        method: "prepare",
        value: { type: "done", result: { ok: false, failure: { phase: "verify", reason: "unsigned", message: "x" } } },
        translated: known({
          type: "done",
          result: { ok: false, failure: { phase: "source", reason: "other", message: "x" } },
        }),
      },
      "an unknown message among outputs is skipped": {
        method: "outputs",
        value: { type: "schema" },
        translated: { kind: "skipped" },
      },
      "a malformed answer is left to the schema check": { method: "watch", value: 7, translated: known(7) },
    };
  for (const [name, { method, value, translated }] of Object.entries(cases)) {
    test(name, () => expect(translateAnswer(method, value, currentVocabulary)).toEqual(translated));
  }
});

describe("an error from a newer version becomes retryable", () => {
  const cases: readonly (readonly [code: string, status: number, read: string])[] = [
    ["busy", 409, "busy"],
    ["quotaExceeded", 429, "failed"],
    // Not "notFound", which would end the Update although the run may exist.
    ["archived", 404, "failed"],
    ["degraded", 503, "internal"],
  ];
  for (const [code, status, read] of cases) {
    test(`${code} with status ${status} becomes ${read}`, () => {
      expect(translateError({ code, message: "x" }, currentVocabulary, status)).toEqual({ code: read, message: "x" });
    });
  }
});
