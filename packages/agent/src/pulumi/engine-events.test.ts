import { describe, expect, test } from "bun:test";
import { RunEvent } from "@pko/records";
import { checkValue } from "@pko/rpc";
import { Redactor } from "../system/redact.ts";
import { parseEngineEvent } from "./engine-events.ts";
import { outputsFromEvent } from "./outputs.ts";

const redactor = new Redactor();
const clean = (text: string) => redactor.clean(text);
const event = (payload: object) => parseEngineEvent(JSON.stringify({ sequence: 7, timestamp: 1, ...payload }), clean);
const metadata = { op: "create", urn: "urn:pulumi:dev::demo::t::n", type: "t" };

describe("engine events", () => {
  test("of resources have a phase", () => {
    expect(event({ resourcePreEvent: { metadata } })?.event).toMatchObject({ phase: "started", op: "create" });
    expect(event({ resOutputsEvent: { metadata } })?.event).toMatchObject({ phase: "finished" });
    expect(event({ resOpFailedEvent: { metadata } })?.event).toMatchObject({ phase: "failed" });
  });

  test("of a program's output are diagnostics, and errors have their lines", () => {
    const converted = event({ diagnosticEvent: { severity: "info#err", message: "Error: x\n  at y\n" } });
    expect<readonly string[] | undefined>(converted?.errorLines).toEqual(["Error: x", "  at y"]);
    expect(converted?.event).toEqual({ kind: "diagnostic", severity: "info", message: "Error: x\n  at y" });
    expect(event({ diagnosticEvent: { severity: "debug", message: "noise" } })?.event).toBeUndefined();
    expect(event({ diagnosticEvent: { severity: "info", message: "50 %", ephemeral: true } })?.event).toBeUndefined();
  });

  test("of policies are mandatory or advisory", () => {
    const violation = { policyName: "p", policyPackName: "pack", message: "no", enforcementLevel: "mandatory" };
    expect(event({ policyEvent: violation })).toMatchObject({ isMandatoryPolicy: true, errorLines: ["pack/p: no"] });
    expect(event({ policyEvent: { ...violation, enforcementLevel: "advisory" } })?.isMandatoryPolicy).toBe(false);
  });

  test("of the summary have the changes", () => {
    const summary = { resourceChanges: { create: 2, odd: -1, wrong: "x" }, durationSeconds: 3, result: "succeeded" };
    expect(event({ summaryEvent: summary })?.event).toEqual({
      kind: "summary",
      changes: { create: 2 },
      durationSeconds: 3,
      result: "succeeded",
    });
  });

  for (const [name, line] of Object.entries({
    "invalid JSON": "{",
    "a number": "7",
    null: "null",
    "an event without a number": `{"sequence":"x"}`,
    "an array": "[]",
  })) {
    test(`${name} is ignored`, () => expect(parseEngineEvent(line, clean)).toBeUndefined());
  }

  for (const [name, payload] of Object.entries({
    "fields of other types": { resourcePreEvent: { metadata: { op: 1, urn: null, type: [] } } },
    "no metadata": { resOutputsEvent: 5 },
    "a message of a million characters": { diagnosticEvent: { severity: "error", message: "x".repeat(1_000_000) } },
    binary: { diagnosticEvent: { severity: "error", message: "\u0000\u0007\uFFFD" } },
    "an empty summary": { summaryEvent: null },
    "an enormous name": { resourcePreEvent: { metadata: { ...metadata, urn: "u".repeat(100_000) } } },
  })) {
    test(`${name} becomes an event that matches the protocol, or none`, () => {
      const converted = event(payload);
      if (converted?.event) expect(checkValue(RunEvent, converted.event)).toMatchObject({ ok: true });
    });
  }
});

describe("secrets in engine events", () => {
  /** On one line, as a program gets it, and longer than the limit of a line. */
  const key = JSON.stringify({ type: "service_account", private_key: `-----BEGIN-----\n${"canary".repeat(400)}\n` });
  const pem = Array.from({ length: 20 }, (_, index) => `canary${index}`.padEnd(64, "A")).join("\n");
  redactor.add(key, "short-canary", pem);

  for (const [name, message] of Object.entries({
    "longer than a line": `error: cannot parse ${key}`,
    "at the end of a truncated line": `${"x".repeat(1_993)}short-canary`,
    "at the end of a truncated message": `${"word ".repeat(3_275)}short-canary`,
    "with many lines": `Error: bad key ${pem}`,
    "with many lines, as JSON": `Error: ${JSON.stringify({ key: pem })}`,
    "within JSON within JSON": `Error: ${JSON.stringify({ body: key })}`,
    "in base64": `Error: ${Buffer.from(`user:short-canary`).toString("base64")} ${btoa("short-canary")} ${btoa(key)}`,
  })) {
    test(`${name} are masked`, () => {
      const { event: converted, errorLines } =
        event({ diagnosticEvent: { severity: "error", message, urn: message } }) ?? {};
      const sent = JSON.stringify([converted, errorLines]);
      expect(sent).toContain("[secret]");
      for (const leaked of ["canar", "short-", "BEGIN-----", btoa("short-canary").slice(0, 6), btoa(key).slice(0, 9)]) {
        expect(sent).not.toContain(leaked);
      }
    });
  }

  test("printed line by line, one event each, are masked", () => {
    for (const line of pem.split("\n")) {
      const converted = event({ diagnosticEvent: { severity: "info#err", message: `  ${line}\r\n` } });
      expect<readonly string[] | undefined>(converted?.errorLines).toEqual(["  [secret]"]);
    }
  });

  test.each([
    ["the type of a resource", { resOutputsEvent: { metadata: { op: "update", type: "my:short-canary:Type" } } }],
    ["an operation", { resOutputsEvent: { metadata: { op: "short-canary", type: "t" } } }],
    ["a policy's level", { policyEvent: { enforcementLevel: "short-canary" } }],
    ["a count", { summaryEvent: { resourceChanges: { "short-canary": 1 }, result: "short-canary" } }],
    [
      "a kind of change",
      { resOutputsEvent: { metadata: { op: "update", detailedDiff: { a: { diffKind: "short-canary" } } } } },
    ],
  ])("in %s are masked", (_, fields) => {
    const sent = JSON.stringify(event(fields)?.event);
    expect(sent).toContain("[secret]");
    expect(sent).not.toContain("canary");
  });

  test("that look like a part of an error do not prevent its classification", () => {
    redactor.add("currently locked");
    const converted = event({
      diagnosticEvent: { severity: "error", message: "the stack is currently locked by 1 lock(s)" },
    });
    expect(converted?.known?.class).toBe("conflict");
    expect<readonly string[] | undefined>(converted?.errorLines).toEqual(["the stack is [secret] by 1 lock(s)"]);
  });
});

test("a message is truncated between characters", () => {
  const converted = event({
    diagnosticEvent: { severity: "error", message: `${"x".repeat(1_998)}😀😀`, urn: "😀".repeat(4096) },
  });
  expect(JSON.stringify(converted)).not.toMatch(/\\ud[89a-f]/i);
  expect<readonly string[] | undefined>(converted?.errorLines).toEqual([`${"x".repeat(1_998)}…`]);
});

describe("outputs in events", () => {
  const secret = { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", ciphertext: "[secret]" };
  const asset = { "4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17", text: "x" };

  test("are complete if all values are known", () => {
    const { complete, outputs } = outputsFromEvent({ a: 1, b: { c: ["x", null] } }, false);
    expect(complete).toBe(true);
    expect(outputs).toEqual([
      { name: "a", secret: false, known: true, value: 1 },
      { name: "b", secret: false, known: true, value: { c: ["x", null] } },
    ]);
  });

  test("that contain a secret anywhere are secret and must be read from the CLI", () => {
    const { complete, outputs } = outputsFromEvent({ a: { deep: [secret] }, b: 1 }, false);
    expect(complete).toBe(false);
    expect(outputs[0]).toEqual({ name: "a", secret: true, known: false });
  });

  test("that are not plain JSON must be read from the CLI", () => {
    expect(outputsFromEvent({ a: asset }, false)).toEqual({
      complete: false,
      outputs: [{ name: "a", secret: false, known: false }],
    });
  });

  test("of a preview may be unknown", () => {
    const { complete, outputs } = outputsFromEvent({ a: "04da6b54-80e4-46f7-96ec-b56ff0331ba9", s: secret }, true);
    expect(complete).toBe(true);
    expect(outputs.map(({ known }) => known)).toEqual([false, false]);
  });
});
