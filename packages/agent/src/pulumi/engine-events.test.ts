import { describe, expect, test } from "bun:test";
import { checkValue, RunEvent } from "@pko/rpc";
import { Redactor } from "../system/redact.ts";
import { parseEngineEvent } from "./engine-events.ts";
import { outputsFromEvent } from "./outputs.ts";

const redactor = new Redactor();
const clean = (text: string) => redactor.clean(text);
const event = (payload: object) => parseEngineEvent(JSON.stringify({ sequence: 7, timestamp: 1, ...payload }), clean);
const metadata = { op: "create", urn: "urn:pulumi:dev::demo::t::n", type: "t" };

describe("engine events", () => {
  test("of resources", () => {
    expect(event({ resourcePreEvent: { metadata } })?.event).toMatchObject({ phase: "started", op: "create" });
    expect(event({ resOutputsEvent: { metadata } })?.event).toMatchObject({ phase: "finished" });
    expect(event({ resOpFailedEvent: { metadata } })?.event).toMatchObject({ phase: "failed" });
  });

  test("of what programs print", () => {
    const told = event({ diagnosticEvent: { severity: "info#err", message: "Error: x\n  at y\n" } });
    expect<readonly string[] | undefined>(told?.errorLines).toEqual(["Error: x", "  at y"]);
    expect(told?.event).toEqual({ kind: "diagnostic", severity: "info", message: "Error: x\n  at y" });
    expect(event({ diagnosticEvent: { severity: "debug", message: "noise" } })?.event).toBeUndefined();
    expect(event({ diagnosticEvent: { severity: "info", message: "50 %", ephemeral: true } })?.event).toBeUndefined();
  });

  test("of policies", () => {
    const violation = { policyName: "p", policyPackName: "pack", message: "no", enforcementLevel: "mandatory" };
    expect(event({ policyEvent: violation })).toMatchObject({ isMandatoryPolicy: true, errorLines: ["pack/p: no"] });
    expect(event({ policyEvent: { ...violation, enforcementLevel: "advisory" } })?.isMandatoryPolicy).toBe(false);
  });

  test("of the end", () => {
    const summary = { resourceChanges: { create: 2, odd: -1, wrong: "x" }, durationSeconds: 3, result: "succeeded" };
    expect(event({ summaryEvent: summary })?.event).toEqual({
      kind: "summary",
      changes: { create: 2 },
      durationSeconds: 3,
      result: "succeeded",
    });
  });

  for (const [name, line] of Object.entries({
    "no JSON": "{",
    "not an object": "7",
    null: "null",
    "no number": `{"sequence":"x"}`,
    "an array": "[]",
  })) {
    test(`${name} is passed over`, () => expect(parseEngineEvent(line, clean)).toBeUndefined());
  }

  for (const [name, payload] of Object.entries({
    "fields of other types": { resourcePreEvent: { metadata: { op: 1, urn: null, type: [] } } },
    "no metadata": { resOutputsEvent: 5 },
    "a message of a million characters": { diagnosticEvent: { severity: "error", message: "x".repeat(1_000_000) } },
    binary: { diagnosticEvent: { severity: "error", message: "\u0000\u0007\uFFFD" } },
    "a summary of nothing": { summaryEvent: null },
    "an enormous name": { resourcePreEvent: { metadata: { ...metadata, urn: "u".repeat(100_000) } } },
  })) {
    test(`${name} makes an event that fits the contract, or none`, () => {
      const told = event(payload);
      if (told?.event) expect(checkValue(RunEvent, told.event)).toMatchObject({ ok: true });
    });
  }
});

describe("secrets in engine events", () => {
  /** In one line, as a program gets it: longer than anything that is shown of a line. */
  const key = JSON.stringify({ type: "service_account", private_key: `-----BEGIN-----\n${"canary".repeat(400)}\n` });
  const pem = Array.from({ length: 20 }, (_, index) => `canary${index}`.padEnd(64, "A")).join("\n");
  redactor.add(key, "short-canary", pem);

  for (const [name, message] of Object.entries({
    "longer than a line may be": `error: cannot parse ${key}`,
    "across the end of what a line may be": `${"x".repeat(1_993)}short-canary`,
    "across the end of what a message may be": `${"word ".repeat(3_275)}short-canary`,
    "of many lines": `Error: bad key ${pem}`,
    "of many lines, as JSON": `Error: ${JSON.stringify({ key: pem })}`,
    "within JSON within JSON": `Error: ${JSON.stringify({ body: key })}`,
    "in base64": `Error: ${Buffer.from(`user:short-canary`).toString("base64")} ${btoa("short-canary")} ${btoa(key)}`,
  })) {
    test(`${name} do not travel`, () => {
      const { event: told, errorLines } =
        event({ diagnosticEvent: { severity: "error", message, urn: message } }) ?? {};
      const travelled = JSON.stringify([told, errorLines]);
      expect(travelled).toContain("[secret]");
      for (const leaked of ["canar", "short-", "BEGIN-----", btoa("short-canary").slice(0, 6), btoa(key).slice(0, 9)]) {
        expect(travelled).not.toContain(leaked);
      }
    });
  }

  test("printed line by line, an event each, do not travel", () => {
    for (const line of pem.split("\n")) {
      const told = event({ diagnosticEvent: { severity: "info#err", message: `  ${line}\r\n` } });
      expect<readonly string[] | undefined>(told?.errorLines).toEqual(["  [secret]"]);
    }
  });

  test("that look like words that matter do not hide what an error means", () => {
    redactor.add("currently locked");
    const told = event({
      diagnosticEvent: { severity: "error", message: "the stack is currently locked by 1 lock(s)" },
    });
    expect(told?.known?.class).toBe("conflict");
    expect<readonly string[] | undefined>(told?.errorLines).toEqual(["the stack is [secret] by 1 lock(s)"]);
  });
});

test("a message is cut between characters", () => {
  const told = event({
    diagnosticEvent: { severity: "error", message: `${"x".repeat(1_998)}😀😀`, urn: "😀".repeat(4096) },
  });
  expect(JSON.stringify(told)).not.toMatch(/\\ud[89a-f]/i);
  expect<readonly string[] | undefined>(told?.errorLines).toEqual([`${"x".repeat(1_998)}…`]);
});

describe("outputs in events", () => {
  const secret = { "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", ciphertext: "[secret]" };
  const asset = { "4dabf18193072939515e22adb298388d": "c44067f5952c0a294b673a41bacd8c17", text: "x" };

  test("that are all known need no CLI", () => {
    const { complete, outputs } = outputsFromEvent({ a: 1, b: { c: ["x", null] } }, false);
    expect(complete).toBe(true);
    expect(outputs).toEqual([
      { name: "a", secret: false, known: true, value: 1 },
      { name: "b", secret: false, known: true, value: { c: ["x", null] } },
    ]);
  });

  test("with a secret anywhere are secret, and asked for", () => {
    const { complete, outputs } = outputsFromEvent({ a: { deep: [secret] }, b: 1 }, false);
    expect(complete).toBe(false);
    expect(outputs[0]).toEqual({ name: "a", secret: true, known: false });
  });

  test("that are more than JSON are asked for", () => {
    expect(outputsFromEvent({ a: asset }, false)).toEqual({
      complete: false,
      outputs: [{ name: "a", secret: false, known: false }],
    });
  });

  test("of a preview stay unknown where they are", () => {
    const { complete, outputs } = outputsFromEvent({ a: "04da6b54-80e4-46f7-96ec-b56ff0331ba9", s: secret }, true);
    expect(complete).toBe(true);
    expect(outputs.map(({ known }) => known)).toEqual([false, false]);
  });
});
