/** Explains a failed CLI command: maps its output and exit code to the classes that callers act on. */
import { type ErrorClass, type PrepareReason } from "@pko/rpc";
import { failed, type Outcome } from "../outcome.ts";
import { lastLines, errorSentence, cleanText, type Clean } from "../system/clean-text.ts";
import { cleanOutput, type CommandEnd } from "../system/command.ts";
import type { Redactor } from "../system/redact.ts";
import { noPulumi } from "./cli.ts";

interface Pattern {
  readonly class: ErrorClass;
  readonly pattern: RegExp;
  readonly message: Clean;
}

/** The first match wins. The CLI's exit codes are less specific, and older versions do not have them. */
const patterns: readonly Pattern[] = [
  {
    class: "conflict",
    pattern: /\[409\] Conflict: Another update is currently in progress|the stack is currently locked by/,
    message: cleanText`another update of the stack is in progress`,
  },
  {
    class: "invalidToken",
    pattern: /PULUMI_ACCESS_TOKEN must be set/,
    message: cleanText`there is no access token for Pulumi Cloud; set envRefs.PULUMI_ACCESS_TOKEN, or set the organization in stack or oidc to sign in with the service account's token`,
  },
  {
    class: "invalidToken",
    pattern:
      /invalid access token|\[401\] Unauthorized|Unauthorized: No credentials provided or are invalid|requires logging in|problem logging in/i,
    message: cleanText`Pulumi Cloud rejects the access token, because it is invalid or has expired; update the Secret that envRefs.PULUMI_ACCESS_TOKEN or accessTokenSecret refers to`,
  },
  {
    class: "versionTooLow",
    pattern:
      /unknown (shorthand )?flag: |does not satisfy the version range|requires a newer version of the pulumi cli/i,
    message: cleanText`the workspace's Pulumi CLI is too old; use a newer pulumi/pulumi image`,
  },
  {
    class: "other",
    pattern: /incorrect passphrase/,
    message: cleanText`PULUMI_CONFIG_PASSPHRASE is not the passphrase of the stack's secrets; set it to that passphrase, or change the stack's with \`pulumi stack change-secrets-provider passphrase\``,
  },
  {
    class: "other",
    pattern: /passphrase must be set with PULUMI_CONFIG_PASSPHRASE/,
    message: cleanText`the stack's secrets are encrypted with a passphrase, which is not set; set PULUMI_CONFIG_PASSPHRASE`,
  },
  {
    class: "stackNotFound",
    pattern: /no stack named '|failed to find the stack snapshot|\[404\] Not Found: Stack/,
    message: cleanText`the stack does not exist`,
  },
  {
    class: "unexpectedChanges",
    pattern: /no changes were expected/,
    message: cleanText`there are changes although none were expected`,
  },
  {
    class: "pendingOperations",
    // Only the error of old CLIs: newer ones print a warning and continue.
    pattern: /resource\(s\) with pending operations/,
    message: cleanText`an earlier update was interrupted, so the state of some resources is unknown`,
  },
  {
    class: "pluginMissing",
    pattern:
      /no (resource|language|analyzer|converter|tool) plugin '|could not find latest version for provider|error downloading (provider|plugin)|failed to load (plugin|provider|language plugin)|could not install plugin/i,
    message: cleanText`a plugin that the program needs cannot be loaded or downloaded`,
  },
  {
    class: "policyViolation",
    pattern: /\[mandatory\]|policy violations?:|mandatory policy/i,
    message: cleanText`a mandatory policy is violated`,
  },
];

/** The meaning of an error. The message contains nothing of the original text. */
export type KnownError = Pick<Pattern, "class" | "message">;

export function classify(text: string): KnownError | undefined {
  return patterns.find(({ pattern }) => pattern.test(text));
}

/** The one whose pattern is first in the list. */
export function firstKnown(a: KnownError | undefined, b: KnownError | undefined): KnownError | undefined {
  return patterns.find((pattern) => pattern === a || pattern === b);
}

/** Explains a failed command of `prepare`. `what` starts the message: "the stack cannot be selected". */
export function explainEnd(end: CommandEnd, what: string, redactor: Redactor): Outcome<never> {
  if (end.kind === "missing") return failed("toolMissing", noPulumi);
  if (end.kind === "aborted") return failed("superseded", "a newer request replaced this one");
  // Classify the original text, because masking a secret could hide a part that matters.
  const text = end.kind === "exited" ? `${end.stdout}\n${end.stderr}` : end.stderr;
  const lines = lastLines(cleanOutput(end, redactor), 30);
  if (end.kind === "timedOut") return failed("other", `${what}: the CLI did not finish in time`, lines);
  const known = classify(text);
  const detail = known?.message ?? firstError(lines);
  return failed(prepareReason(known?.class), detail ? `${what}: ${detail}` : what, lines);
}

function firstError(lines: readonly Clean[]): Clean | undefined {
  const line = lines.find((candidate) => candidate.startsWith("error: ")) ?? lines.at(-1);
  return line && errorSentence(line, 500);
}

function prepareReason(errorClass: ErrorClass | undefined): PrepareReason {
  if (errorClass === "invalidToken" || errorClass === "stackNotFound" || errorClass === "versionTooLow") {
    return errorClass;
  }
  return "other";
}
