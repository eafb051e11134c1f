/** When and how a Stack's updates run. */
import { sentence, validatedBy } from "../schema/cel.ts";
import { choice, flag, int64, listOf, optional, texts } from "../schema/field.ts";
import { Prerequisite } from "./prerequisite.ts";
import { stackWording as wording } from "./wording.ts";

export const lifecycleFields = {
  preview: optional(flag("Whether only previews run, so that nothing is ever changed.")),
  refresh: optional(flag("Whether the state is refreshed before each update.")),
  expectNoRefreshChanges: optional(
    flag("Whether an update stops, before it changes anything, when the refresh before it finds changes."),
  ),
  runProgram: optional(flag("Whether the program runs for a destroy too.")),
  targets: optional(texts("URNs of the only resources to work on.")),
  targetDependents: optional(flag("Whether resources that depend on the targets are worked on too.")),
  // The bound lets the API server check each entry.
  prerequisites: optional(listOf(Prerequisite, "Stacks that must have succeeded first.", { maxItems: 1000 })),
  continueResyncOnCommitMatch: optional(
    flag("Whether updates run again and again, every resyncFrequencySeconds, though nothing has changed."),
  ),
  resyncFrequencySeconds: optional(
    int64(
      "How many seconds lie between looks for new commits, and between repeated updates; at least, and by default, 60.",
      {
        ...validatedBy({ rule: "self >= 0", message: sentence(wording.negativeResync) }),
      },
    ),
  ),
  retryMaxBackoffDurationSeconds: optional(
    int64("The longest wait in seconds before a failed update is tried again; 86400 when left out or 0."),
  ),
  retryOnUpdateConflict: optional(flag("Whether to try again soon when another update of the same stack is running.")),
  useLocalStackOnly: optional(flag("Whether the Pulumi stack must exist already; otherwise it is created.")),
  initOnCreate: optional(flag("Accepted for compatibility: the Pulumi stack is created anyway.")),
  destroyOnFinalize: optional(flag("Whether deleting the Stack first destroys its resources and the Pulumi stack.")),
  workspaceReclaimPolicy: optional(
    choice(
      ["Retain", "Delete"],
      "What becomes of the workspace after a successful update: Retain, the default, or Delete.",
    ),
  ),
};
