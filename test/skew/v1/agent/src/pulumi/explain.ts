/** What a failed command of the CLI means: its words and exit code, put into the classes callers act on. */
import { type ErrorClass, type PrepareReason } from "../../../rpc/src/index.ts";
import { failed, type Outcome } from "../outcome.ts";
import { lastLines, sentenceOf, told, type Clean } from "../system/clean-text.ts";
import { cleanOutput, type CommandEnd } from "../system/command.ts";
import type { Redactor } from "../system/redact.ts";

interface Pattern {
  readonly class: ErrorClass;
  readonly pattern: RegExp;
  readonly message: Clean;
}

/** First match wins. The CLI's own exit codes tell less, and only since 3.2xx. */
const patterns: readonly Pattern[] = [
  {
    class: "conflict",
    pattern: /\[409\] Conflict: Another update is currently in progress|the stack is currently locked by/,
    message: told`another update of the stack is in progress`,
  },
  {
    class: "invalidToken",
    pattern: /PULUMI_ACCESS_TOKEN must be set/,
    message: told`there is no access token for Pulumi Cloud; set envRefs.PULUMI_ACCESS_TOKEN, or name the organization, in stack or oidc, to sign in with the service account's token`,
  },
  {
    class: "invalidToken",
    pattern:
      /invalid access token|\[401\] Unauthorized|Unauthorized: No credentials provided or are invalid|requires logging in|problem logging in/i,
    message: told`Pulumi Cloud refuses the access token, because it is wrong or has ended; put a valid one where envRefs.PULUMI_ACCESS_TOKEN or accessTokenSecret takes it from`,
  },
  {
    class: "versionTooLow",
    pattern:
      /unknown (shorthand )?flag: |does not satisfy the version range|requires a newer version of the pulumi cli/i,
    message: told`the workspace's Pulumi CLI is too old: use a later pulumi/pulumi image`,
  },
  {
    class: "other",
    pattern: /incorrect passphrase/,
    message: told`PULUMI_CONFIG_PASSPHRASE is not the passphrase that the stack's secrets are encrypted with; give it that one, or change it on the stack by \`pulumi stack change-secrets-provider passphrase\``,
  },
  {
    class: "other",
    pattern: /passphrase must be set with PULUMI_CONFIG_PASSPHRASE/,
    message: told`the stack's secrets are encrypted with a passphrase, and there is none; set PULUMI_CONFIG_PASSPHRASE`,
  },
  {
    class: "stackNotFound",
    pattern: /no stack named '|failed to find the stack snapshot|\[404\] Not Found: Stack/,
    message: told`the stack does not exist`,
  },
  {
    class: "unexpectedChanges",
    pattern: /no changes were expected/,
    message: told`changes were not expected, and there were some`,
  },
  {
    class: "pendingOperations",
    pattern: /resource\(s\) with pending operations|pending operations from previous deployment/i,
    message: told`an earlier update was interrupted: the state of some resources is unknown`,
  },
  {
    class: "pluginMissing",
    pattern:
      /no (resource|language|analyzer|converter|tool) plugin '|could not find latest version for provider|error downloading (provider|plugin)|failed to load (plugin|provider|language plugin)|could not install plugin/i,
    message: told`a plugin that the program needs cannot be had`,
  },
  {
    class: "policyViolation",
    pattern: /\[mandatory\]|policy violations?:|mandatory policy/i,
    message: told`a mandatory policy is violated`,
  },
];

/** What a text means, in words of ours: nothing of the text itself is in it. */
export type Known = Pick<Pattern, "class" | "message">;

export function classify(text: string): Known | undefined {
  return patterns.find(({ pattern }) => pattern.test(text));
}

/** Of two meanings, the one whose pattern comes first. */
export function firstKnown(a: Known | undefined, b: Known | undefined): Known | undefined {
  return patterns.find((pattern) => pattern === a || pattern === b);
}

/** A command of `Prepare` that failed. `what` begins the sentence: "the stack cannot be selected". */
export function explainEnd(end: CommandEnd, what: string, redactor: Redactor): Outcome<never> {
  if (end.kind === "missing") return failed("toolMissing", "the workspace's image has no `pulumi`");
  if (end.kind === "aborted") return failed("superseded", "a newer request took over");
  // Judged as it is, shown with its secrets masked: a secret may look like a word that matters.
  const text = end.kind === "exited" ? `${end.stdout}\n${end.stderr}` : end.stderr;
  const lines = lastLines(cleanOutput(end, redactor), 30);
  if (end.kind === "timedOut") return failed("other", `${what}: the CLI did not finish in time`, lines);
  const known = classify(text);
  const detail = known?.message ?? firstError(lines);
  return failed(reasonOf(known?.class), detail ? `${what}: ${detail}` : what, lines);
}

function firstError(lines: readonly Clean[]): Clean | undefined {
  const line = lines.find((candidate) => candidate.startsWith("error: ")) ?? lines.at(-1);
  return line && sentenceOf(line, 500);
}

function reasonOf(errorClass: ErrorClass | undefined): PrepareReason {
  if (errorClass === "invalidToken" || errorClass === "stackNotFound" || errorClass === "versionTooLow") {
    return errorClass;
  }
  return "other";
}
