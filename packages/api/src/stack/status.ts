/** The observed state of a Stack. Dashboards, Argo CD and other Stacks read it. */
import { Type, type Static } from "typebox";

import { conditionTypes, stackConditions } from "../conditions.ts";
import { anything, choice, flag, int64, mapOf, optional, text, time } from "../schema/field.ts";
import { conditionsOf } from "../shared/condition.ts";
import { projectInfo } from "../shared/project-info.ts";
import { runReportFields } from "../shared/run-report.ts";
import { UpdateDrift } from "../update/status.ts";
import { cancelledPreviews, pullRequestPreviews } from "./pull-requests.ts";

const trigger = {
  name: optional(text("The name of the Update.")),
  generation: optional(int64("The generation of the Stack that the update deploys.")),
  reconcileRequest: optional(
    text("The value of the annotation pulumi.com/reconciliation-request that requested the update."),
  ),
};

const LastUpdate = Type.Object(
  {
    ...trigger,
    type: optional(text("The operation: preview, up, refresh or destroy.")),
    state: optional(text("The result: succeeded or failed.")),
    message: optional(text("Details about the result, such as the error.")),
    lastAttemptedCommit: optional(text("The source revision of the last attempt.")),
    lastSuccessfulCommit: optional(text("The source revision of the last success.")),
    digest: optional(
      text(
        "The digest of the source of the last attempt, if the source has one. Content with the same digest is not deployed again.",
      ),
    ),
    permalink: optional(text("The URL of the operation in Pulumi Cloud.")),
    lastResyncTime: optional(time("The time when the update finished.")),
    failures: optional(int64("The number of consecutive failed updates.")),
    failure: optional(text("The class of the failure, such as conflict, programError or interrupted.")),
    warning: optional(text("What remains to be done although the update succeeded, such as pending operations.")),
    outputsPending: optional(
      flag(
        "Whether the outputs could not be written to the Secret <stack>-outputs, because the Secret has another owner.",
      ),
    ),
    inputs: optional(text("The other Stacks, Secrets and ConfigMaps that the update used, each with its version.")),
    ...runReportFields,
  },
  { description: "The last finished update." },
);
export type LastUpdate = Static<typeof LastUpdate>;

const CurrentUpdate = Type.Object(
  { ...trigger, commit: optional(text("The source revision that the update deploys.")) },
  { description: "The running update, if any." },
);

const SkippedCommit = Type.Object(
  {
    commit: text("The commit."),
    since: text("The commit of the last successful update, with which it was compared."),
  },
  { description: "The last commit that changed no file that pathFilters select, so that nothing ran for it." },
);
export type SkippedCommit = Static<typeof SkippedCommit>;

const Waiting = Type.Object(
  {
    for: text("What the Stack is waiting for."),
    since: time("The time when the wait started."),
  },
  { description: "What the Stack is waiting for, if anything." },
);

const Next = Type.Object(
  {
    what: text("The next action."),
    time: time("The earliest time of the next action."),
  },
  { description: "The next automatic action, if any." },
);

const ApprovalRequest = Type.Object(
  {
    state: choice(
      ["NotRequired", "Pending", "Approved", "Rejected", "Superseded"],
      "Whether the plan may be applied: NotRequired, Pending, Approved, Rejected, or Superseded if nothing is left to apply.",
    ),
    updateName: text("The name of the Update that kept the plan."),
    updateUid: text("The UID of that Update."),
    digest: text("The digest of the plan."),
    trigger: text("What the plan is for, as the annotation pulumi.com/trigger of its Update."),
    coveredCommit: optional(
      text("A newer commit that the plan also covers, because it has the same content as the commit of the plan."),
    ),
    summary: text("The changes by resource: replacements and deletions first."),
    unknownInputs: optional(int64("The number of input values that will be known only while the plan is applied.")),
    expiresAt: time("The time after which the plan cannot be approved or applied."),
    appliedBy: optional(text("The name of the Update that applies the plan. A plan is applied once.")),
    approvalName: optional(text("The name of the Approval.")),
    decidedBy: optional(text("The user who decided.")),
    decidedAt: optional(time("The time of the decision.")),
    reason: optional(text("The reason that the user gave.")),
  },
  { description: "The plan that waits for an approval, or that was decided last." },
);
export type ApprovalRequest = Static<typeof ApprovalRequest>;

const Drift = Type.Object(
  {
    checkedAt: time("The time of the last drift check."),
    updateName: optional(text("The name of the Update that checked for drift.")),
    request: optional(text("The value of the annotation pulumi.com/drift-request that requested the check.")),
    summary: optional(text("The drift in one line.")),
    ...UpdateDrift.properties,
    failures: optional(int64("The number of consecutive failed checks.")),
    corrected: optional(
      Type.Object(
        {
          updateName: text("The name of the Update that corrected the drift."),
          time: time("The time when that Update finished."),
          summary: text("The drift that it corrected, in one line."),
        },
        { description: "The last correction, until a check finds no drift." },
      ),
    ),
  },
  { description: "The result of the last drift check." },
);
export type StackDrift = Static<typeof Drift>;

export const StackStatus = Type.Object(
  {
    observedGeneration: optional(int64("The generation of the Stack that the status is based on.")),
    observedReconcileRequest: optional(
      text("The last observed value of the annotation pulumi.com/reconciliation-request."),
    ),
    conditions: optional(conditionsOf(conditionTypes(stackConditions))),
    currentUpdate: optional(CurrentUpdate),
    lastUpdate: optional(LastUpdate),
    skippedCommit: optional(SkippedCommit),
    approval: optional(ApprovalRequest),
    drift: optional(Drift),
    pullRequests: optional(pullRequestPreviews),
    cancelledPreviews: optional(cancelledPreviews),
    waiting: optional(Waiting),
    next: optional(Next),
    outputs: optional(
      mapOf(anything("The value of the output."), "The stack's outputs by name. Secret values are shown as [secret]."),
    ),
    deployed: optional(
      flag(
        "Whether an update that may have changed resources has run. If only previews have run, deleting the Stack destroys nothing.",
      ),
    ),
    projectInfo: optional(
      projectInfo("The project of the last update, recorded so that a destroy works without the source."),
    ),
  },
  { description: "The observed state of the Stack." },
);
export type StackStatus = Static<typeof StackStatus>;
