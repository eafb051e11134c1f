import { describe, expect, test } from "bun:test";
import type { ErrorClass } from "@pko/rpc";
import { Redactor } from "../system/redact.ts";
import { explainRun, type RunRemains } from "./run-error.ts";

type Words = Omit<RunRemains, "errorLines" | "printed"> & { readonly errorLines: string[]; readonly printed: string };

const redactor = new Redactor();
const clean = (text: string) => redactor.clean(text);

const remains: Words = {
  exitCode: 1,
  signal: undefined,
  cancelled: undefined,
  lost: false,
  errorLines: [],
  isPolicyViolated: false,
  hasTokenEnded: false,
  printed: "",
};

const cases: Record<string, { remains: Partial<Words>; class: ErrorClass; says: RegExp }> = {
  "another update in Pulumi Cloud": {
    remains: { printed: "error: [409] Conflict: Another update is currently in progress.\nTo learn more…" },
    class: "conflict",
    says: /Another update is currently/,
  },
  "the lock of a DIY backend": {
    remains: { printed: "error: the stack is currently locked by 1 lock(s). Either wait" },
    class: "conflict",
    says: /locked by/,
  },
  "a token that ended on the way": {
    remains: { printed: "error: [401] Unauthorized: No credentials provided or are invalid.", hasTokenEnded: true },
    class: "invalidToken",
    says: /ended during the run; give it more time with oidc.expirationSeconds/,
  },
  "a bad token": { remains: { printed: "error: invalid access token" }, class: "invalidToken", says: /token/ },
  "no token": {
    remains: { printed: "error: PULUMI_ACCESS_TOKEN must be set for login during non-interactive CLI sessions" },
    class: "invalidToken",
    says: /token/,
  },
  "a flag the CLI does not know": {
    remains: { printed: "error: unknown flag: --run-program" },
    class: "versionTooLow",
    says: /too old.*--run-program/,
  },
  "a version the project asks for": {
    remains: { printed: 'error: Pulumi CLI version 3.1.0 does not satisfy the version range ">=3.2.0"' },
    class: "versionTooLow",
    says: /version range/,
  },
  "a missing plugin": {
    remains: {
      errorLines: ["error: no resource plugin 'pulumi-resource-random' found in the workspace or on your $PATH"],
    },
    class: "pluginMissing",
    says: /pulumi-resource-random/,
  },
  "pending operations": {
    remains: { errorLines: ["error: the current deployment has 1 resource(s) with pending operations:"] },
    class: "pendingOperations",
    says: /interrupted/,
  },
  "changes that were not expected": {
    remains: { printed: "error: no changes were expected but changes were proposed" },
    class: "unexpectedChanges",
    says: /not expected/,
  },
  "a stack that is gone": {
    remains: { printed: "error: no stack named 'dev' found" },
    class: "stackNotFound",
    says: /dev/,
  },
  "a policy": {
    remains: { isPolicyViolated: true, errorLines: ["pack/no-public: error: bucket is public"] },
    class: "policyViolation",
    says: /no-public/,
  },
  "the program's own error": {
    remains: { errorLines: ["Traceback:", "  File x", "ValueError: boom"] },
    class: "programError",
    says: /ValueError: boom/,
  },
  "words of no known kind": {
    remains: { printed: "hm\nerror: something else" },
    class: "other",
    says: /something else/,
  },
  "no words at all": { remains: { exitCode: 255 }, class: "other", says: /exit code 255/ },
  "cancelled, whatever it said": {
    remains: { cancelled: "asked", errorLines: ["error: update canceled"] },
    class: "cancelled",
    says: /cancelled/,
  },
  "a stopping workspace": { remains: { cancelled: "stopping" }, class: "interrupted", says: /stopping/ },
  "killed from outside": { remains: { signal: "SIGKILL" }, class: "interrupted", says: /out of memory/ },
  lost: { remains: { lost: true }, class: "interrupted", says: /died without a result/ },
};

const explain = (some: Partial<Words>) => {
  const { errorLines, printed, ...rest } = { ...remains, ...some };
  return explainRun({ ...rest, errorLines: errorLines.map(clean), printed: clean(printed) });
};

describe("a failed run", () => {
  for (const [name, { remains: some, class: errorClass, says }] of Object.entries(cases)) {
    test(name, () => {
      const error = explain(some);
      expect(error.class).toBe(errorClass);
      expect(error.message).toMatch(says);
    });
  }

  test("its words are bounded", () => {
    const error = explain({ errorLines: Array.from({ length: 500 }, () => "e".repeat(50_000)) });
    expect(error.lines).toHaveLength(40);
    expect(JSON.stringify(error).length).toBeLessThan(700_000);
    expect(error.message.length).toBeLessThanOrEqual(1_000);
  });

  test("its words are cut between characters", () => {
    const words = `${"x".repeat(998)}😀😀`;
    expect<string>(explain({ errorLines: [words] }).message).toBe(`${"x".repeat(998)}…`);
    const known = explain({ printed: `error: unknown flag: ${"x".repeat(600 - 14 - 2)}😀😀` });
    expect<string>(known.message).toBe(known.message.toWellFormed());
    expect(known.message).toEndWith("x…");
  });

  test("what was known before its secrets were masked stays known", () => {
    const known = explain({ printed: "error: incorrect passphrase" });
    redactor.add("passphrase");
    const raw = { class: known.class, message: known.message };
    expect(explain({ printed: "error: incorrect passphrase" }).message).not.toContain("PULUMI_CONFIG_PASSPHRASE");
    expect(explain({ printed: "error: incorrect passphrase", known: raw }).message).toContain(
      "PULUMI_CONFIG_PASSPHRASE",
    );
  });
});
