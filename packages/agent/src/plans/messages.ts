/** The texts of plans that cannot be kept or applied. They contain URNs and times, but no values. */
import type { RunError } from "@pko/rpc";
import { truncateName } from "../system/clean-text.ts";
import type { Bindings, Bound } from "./sealed-plan.ts";

const nothing = "nothing was changed";

const names: Readonly<Record<Bound, string>> = {
  target: "backend or stack",
  program: "program",
  options: "options",
  inputs: "configuration or environment",
  image: "image",
  cli: "Pulumi CLI",
  stackKey: "secrets provider",
};

/** `sha256:0123456789ab`: enough to recognize a plan. */
export function shortDigest(digest: string): string {
  return truncateName(digest.replace(/^(sha256:[0-9a-f]{12})[0-9a-f]+$/, "$1"), 128);
}

export function planChanged(planned: string, current: string, changed: readonly Bound[]): RunError {
  const what = changed.map((name) => names[name]).join(", ");
  return problem(
    "planChanged",
    `the approval is for plan ${shortDigest(planned)}, the current plan is ${shortDigest(current)} (changed: ${what}); ${nothing}`,
  );
}

export function planStale(digest: string, planned: Bindings, current: Bindings): RunError {
  const when =
    planned.stateTime === current.stateTime || current.stateTime === undefined
      ? "the state was changed without an update"
      : `the state changed at ${current.stateTime}`;
  return problem("planStale", `plan ${shortDigest(digest)} is stale: ${when}; ${nothing}`);
}

export function planUndecryptable(digest: string): RunError {
  return problem(
    "planUnreadable",
    `plan ${shortDigest(digest)} cannot be decrypted: the stack's key changed; ${nothing}`,
  );
}

export function planDamaged(digest: string): RunError {
  return problem(
    "planUnreadable",
    `plan ${shortDigest(digest)} cannot be read: its content does not match its digest; ${nothing}`,
  );
}

const unplannable =
  "a program whose inputs differ in every run (random values, the current time) never matches its plan";

export function planMismatch(digest: string, urns: readonly string[]): RunError {
  return problem(
    "planMismatch",
    `plan ${shortDigest(digest)} no longer matches at ${list(urns)}; ${nothing}. A new preview makes a new plan; ` +
      `if that one does not match either: ${unplannable}`,
  );
}

export function planStopped(digest: string, urns: readonly string[], changes: number): RunError {
  const count = changes === 1 ? "1 change" : `${changes} changes`;
  return problem(
    "planStopped",
    `plan ${shortDigest(digest)} stopped at ${list(urns)} after ${count}; the rest needs a new approval. ` +
      "A plan cannot contain resources that the program creates inside apply of a value that is unknown during the preview",
  );
}

export function planTooLarge(maxChars: number): RunError {
  return problem(
    "other",
    `the plan is too large: compressed, it has more than ${maxChars} characters. Split the program into several stacks`,
  );
}

export function planUnsaved(reason: string): RunError {
  return problem("other", `the plan cannot be saved: ${reason}`);
}

const maxUrns = 5;

function list(urns: readonly string[]): string {
  const known = [...new Set(urns.filter((urn) => urn !== ""))];
  if (known.length === 0) return "a resource that the CLI does not name";
  const shown = known.slice(0, maxUrns).map((urn) => truncateName(urn, 512));
  const omitted = known.length - shown.length;
  return omitted > 0 ? `${shown.join(", ")} and ${omitted} more` : shown.join(", ");
}

function problem(errorClass: RunError["class"], message: string): RunError {
  return { class: errorClass, message, lines: [] };
}
