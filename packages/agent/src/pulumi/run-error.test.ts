import { describe, expect, test } from "bun:test";
import type { ErrorClass } from "@pko/rpc";
import { Redactor } from "../system/redact.ts";
import { explainRun, type RunEnd } from "./run-error.ts";

type RawEnd = Omit<RunEnd, "errorLines" | "printed"> & { readonly errorLines: string[]; readonly printed: string };

const redactor = new Redactor();
const clean = (text: string) => redactor.clean(text);

const failedRun: RawEnd = {
  exitCode: 1,
  signal: undefined,
  cancelled: undefined,
  lost: false,
  errorLines: [],
  isPolicyViolated: false,
  hasTokenExpired: false,
  printed: "",
};

const cases: Record<string, { end: Partial<RawEnd>; class: ErrorClass; message: RegExp }> = {
  "an invalid configuration value of Pulumi YAML": {
    end: {
      errorLines: [
        "Warning: field is deprecated",
        "Error registering config [a]: no diagnostics",
        "missing required configuration variable",
      ],
    },
    class: "programError",
    message: /^missing required configuration variable$/,
  },
  "an error without a reason": {
    end: { errorLines: ["Error registering config [a]: no diagnostics"] },
    class: "programError",
    message: /^Error registering config/,
  },
  "an error without a reason, after a warning": {
    end: { errorLines: ["Warning: field is deprecated", "Error registering config [a]: no diagnostics"] },
    class: "programError",
    message: /^Error registering config/,
  },
  "another update in Pulumi Cloud": {
    end: { printed: "error: [409] Conflict: Another update is currently in progress.\nTo learn more…" },
    class: "conflict",
    message: /Another update is currently/,
  },
  "the lock of a DIY backend": {
    end: { printed: "error: the stack is currently locked by 1 lock(s). Either wait" },
    class: "conflict",
    message: /locked by/,
  },
  "a token that expired during the run": {
    end: { printed: "error: [401] Unauthorized: No credentials provided or are invalid.", hasTokenExpired: true },
    class: "invalidToken",
    message: /expired during the run; increase oidc.expirationSeconds/,
  },
  "an invalid token": { end: { printed: "error: invalid access token" }, class: "invalidToken", message: /token/ },
  "no token": {
    end: { printed: "error: PULUMI_ACCESS_TOKEN must be set for login during non-interactive CLI sessions" },
    class: "invalidToken",
    message: /token/,
  },
  "a flag that the CLI does not know": {
    end: { printed: "error: unknown flag: --run-program" },
    class: "versionTooLow",
    message: /too old.*--run-program/,
  },
  "a version that the project requires": {
    end: { printed: 'error: Pulumi CLI version 3.1.0 does not satisfy the version range ">=3.2.0"' },
    class: "versionTooLow",
    message: /version range/,
  },
  "a missing plugin": {
    end: {
      errorLines: ["error: no resource plugin 'pulumi-resource-random' found in the workspace or on your $PATH"],
    },
    class: "pluginMissing",
    message: /pulumi-resource-random/,
  },
  "pending operations": {
    end: { errorLines: ["error: the current deployment has 1 resource(s) with pending operations:"] },
    class: "pendingOperations",
    message: /interrupted/,
  },
  "a program error after the warning about pending operations": {
    end: {
      errorLines: ["error: it does not work"],
      printed: "warning: Attempting to deploy or update resources with 1 pending operations from previous deployment.",
    },
    class: "programError",
    message: /does not work/,
  },
  "unexpected changes": {
    end: { printed: "error: no changes were expected but changes were proposed" },
    class: "unexpectedChanges",
    message: /none were expected/,
  },
  "a stack that does not exist": {
    end: { printed: "error: no stack named 'dev' found" },
    class: "stackNotFound",
    message: /dev/,
  },
  "a policy violation": {
    end: { isPolicyViolated: true, errorLines: ["pack/no-public: error: bucket is public"] },
    class: "policyViolation",
    message: /no-public/,
  },
  "the program's own error": {
    end: { errorLines: ["Traceback:", "  File x", "ValueError: boom"] },
    class: "programError",
    message: /ValueError: boom/,
  },
  "an unknown error": {
    end: { printed: "hm\nerror: something else" },
    class: "other",
    message: /something else/,
  },
  "no output": { end: { exitCode: 255 }, class: "other", message: /exited with code 255/ },
  "a cancelled run, whatever it printed": {
    end: { cancelled: { by: "requested" }, errorLines: ["error: update canceled"] },
    class: "cancelled",
    message: /cancelled/,
  },
  "a stopping workspace": { end: { cancelled: { by: "stopping" } }, class: "interrupted", message: /stopping/ },
  "a run that exceeded its timeout": {
    end: { cancelled: { by: "total", seconds: 60 }, errorLines: ["error: update canceled"] },
    class: "timedOut",
    message: /^the run was stopped because it exceeded its timeout of 60 s$/,
  },
  "a silent run": {
    end: { cancelled: { by: "silence", seconds: 30 } },
    class: "timedOut",
    message: /^the run was stopped after 30 s without output$/,
  },
  "a run that did not stop after its timeout": {
    end: { cancelled: { by: "silence", seconds: 30, killedAfterSeconds: 540 }, signal: "SIGKILL" },
    class: "timedOut",
    message:
      /^the run was cancelled after 30 s without output, did not stop within the grace period of 540 s, and was killed$/,
  },
  "a killed process": {
    end: { signal: "SIGKILL" },
    class: "interrupted",
    message: /out of memory.*raise the memory limit.*workspaceTemplate\.spec\.resources\.limits\.memory/,
  },
  "a lost process": { end: { lost: true }, class: "interrupted", message: /died without a result/ },
};

const explain = (end: Partial<RawEnd>) => {
  const { errorLines, printed, ...rest } = { ...failedRun, ...end };
  return explainRun({ ...rest, errorLines: errorLines.map(clean), printed: clean(printed) });
};

describe("a failed run", () => {
  for (const [name, { end, class: errorClass, message }] of Object.entries(cases)) {
    test(name, () => {
      const error = explain(end);
      expect(error.class).toBe(errorClass);
      expect(error.message).toMatch(message);
    });
  }

  test("its lines and message are limited", () => {
    const error = explain({ errorLines: Array.from({ length: 500 }, () => "e".repeat(50_000)) });
    expect(error.lines).toHaveLength(40);
    expect(JSON.stringify(error).length).toBeLessThan(700_000);
    expect(error.message.length).toBeLessThanOrEqual(1_000);
  });

  test("its message is truncated between characters", () => {
    const line = `${"x".repeat(998)}😀😀`;
    expect<string>(explain({ errorLines: [line] }).message).toBe(`${"x".repeat(998)}…`);
    const known = explain({ printed: `error: unknown flag: ${"x".repeat(600 - 14 - 2)}😀😀` });
    expect<string>(known.message).toBe(known.message.toWellFormed());
    expect(known.message).toEndWith("x…");
  });

  test("keeps the class from before secrets were masked", () => {
    const known = explain({ printed: "error: incorrect passphrase" });
    redactor.add("passphrase");
    const raw = { class: known.class, message: known.message };
    expect(explain({ printed: "error: incorrect passphrase" }).message).not.toContain("PULUMI_CONFIG_PASSPHRASE");
    expect(explain({ printed: "error: incorrect passphrase", known: raw }).message).toContain(
      "PULUMI_CONFIG_PASSPHRASE",
    );
  });
});
