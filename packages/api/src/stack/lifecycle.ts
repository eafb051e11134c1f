/** When and how a Stack's updates run. */
import { validationText, validatedUnlessInvalidBefore } from "../schema/cel.ts";
import { choice, flag, int64, listOf, optional, texts } from "../schema/field.ts";
import { Prerequisite } from "./prerequisite.ts";
import { stackMessages as messages } from "./messages.ts";

export const lifecycleFields = {
  preview: optional(flag("Whether to run only previews, which change nothing.")),
  refresh: optional(flag("Whether to refresh the state before each update.")),
  expectNoRefreshChanges: optional(
    flag("Whether an update fails before it changes anything if the refresh finds changes."),
  ),
  runProgram: optional(flag("Whether to run the program also for a destroy.")),
  targets: optional(texts("URNs of resources. If set, the operation applies only to them.")),
  targetDependents: optional(flag("Whether the operation also applies to resources that depend on the targets.")),
  // The API server allows a rule for each entry only if the length of the list is bounded.
  prerequisites: optional(listOf(Prerequisite, "Stacks that must have succeeded first.", { maxItems: 1000 })),
  continueResyncOnCommitMatch: optional(
    flag("Whether to run an update every resyncFrequencySeconds even if nothing has changed."),
  ),
  resyncFrequencySeconds: optional(
    int64(
      "The interval in seconds between checks for new commits, and between updates with continueResyncOnCommitMatch. Minimum and default: 60.",
      {
        ...validatedUnlessInvalidBefore({ rule: "self >= 0", message: validationText(messages.negativeResync) }),
      },
    ),
  ),
  retryMaxBackoffDurationSeconds: optional(
    int64(
      "The maximum backoff in seconds before a failed update is retried. Defaults to 86400; 0 also means the default.",
    ),
  ),
  retryOnUpdateConflict: optional(flag("Whether to retry soon if another update of the same Pulumi stack is running.")),
  useLocalStackOnly: optional(
    flag("Whether the Pulumi stack must already exist. By default, it is created if it does not exist."),
  ),
  initOnCreate: optional(
    flag("Accepted for compatibility; has no effect, because the Pulumi stack is created by default."),
  ),
  destroyOnFinalize: optional(
    flag(
      "Whether to destroy the resources when the Stack is deleted. The empty Pulumi stack is kept unless updateTemplate.spec.remove is true.",
    ),
  ),
  workspaceReclaimPolicy: optional(
    choice(
      ["Retain", "Delete"],
      "Whether to keep or delete the workspace after a successful update: Retain (default) or Delete.",
    ),
  ),
};
