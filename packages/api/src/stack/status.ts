/** What is known of a Stack. Dashboards, Argo CD and other Stacks read it. */
import { Type, type Static } from "typebox";

import { conditionTypes, stackConditions } from "../conditions.ts";
import { anything, flag, int64, mapOf, optional, text, time } from "../schema/field.ts";
import { conditionsOf } from "../shared/condition.ts";
import { projectInfo } from "../shared/project-info.ts";
import { runReportFields } from "../shared/run-report.ts";

const trigger = {
  name: optional(text("The name of the Update.")),
  generation: optional(int64("The generation of the Stack that was asked for.")),
  reconcileRequest: optional(text("The value of the annotation pulumi.com/reconciliation-request that was asked for.")),
};

const LastUpdate = Type.Object(
  {
    ...trigger,
    type: optional(text("The operation: preview, up, refresh or destroy.")),
    state: optional(text("How it ended: succeeded or failed.")),
    message: optional(text("What went wrong, or what is worth knowing.")),
    lastAttemptedCommit: optional(text("The revision of the source that was run last.")),
    lastSuccessfulCommit: optional(text("The revision of the source that last succeeded.")),
    digest: optional(
      text("The digest of what was run last, where the source tells one: the same content is not run again."),
    ),
    permalink: optional(text("The operation's page in Pulumi Cloud.")),
    lastResyncTime: optional(time("When it ended.")),
    failures: optional(int64("How many updates in a row have failed.")),
    failure: optional(text("What kind of failure it was, such as conflict, programError or interrupted.")),
    outputsPending: optional(
      flag("Whether its outputs could not be written to the Secret <stack>-outputs, because that is not the Stack's."),
    ),
    inputs: optional(
      text(
        "What it was given by other Stacks, Secrets and ConfigMaps: each with a version that tells it from another.",
      ),
    ),
    ...runReportFields,
  },
  { description: "The last update that ended." },
);
export type LastUpdate = Static<typeof LastUpdate>;

const CurrentUpdate = Type.Object(
  { ...trigger, commit: optional(text("The revision of the source that is being run.")) },
  { description: "The update that is running, if any." },
);

const Waiting = Type.Object(
  {
    for: text("What is waited for."),
    since: time("Since when."),
  },
  { description: "What the Stack waits for, if anything." },
);

const Next = Type.Object(
  {
    what: text("What will be done."),
    time: time("When, at the earliest."),
  },
  { description: "What happens next by itself, if anything." },
);

export const StackStatus = Type.Object(
  {
    observedGeneration: optional(int64("The generation that the status speaks of.")),
    observedReconcileRequest: optional(
      text("The value of the annotation pulumi.com/reconciliation-request that was last seen."),
    ),
    conditions: optional(conditionsOf(conditionTypes(stackConditions))),
    currentUpdate: optional(CurrentUpdate),
    lastUpdate: optional(LastUpdate),
    waiting: optional(Waiting),
    next: optional(Next),
    outputs: optional(
      mapOf(anything("The output's value."), "The stack's outputs by name; a secret shows as [secret]."),
    ),
    deployed: optional(
      flag(
        "Whether an update has run that may have changed resources. Where only previews have, deleting the Stack destroys nothing.",
      ),
    ),
    projectInfo: optional(
      projectInfo("The project as last run, remembered so that a destroy works without the source."),
    ),
  },
  { description: "What the operator last saw and did." },
);
export type StackStatus = Static<typeof StackStatus>;
