/** How people control a Stack: approval, suspension, drift detection, update windows, timeouts and protection. */
import { Type } from "typebox";

import { validationText, validatedBy } from "../schema/cel.ts";
import { choice, flag, int32, int64, listOf, optional, text } from "../schema/field.ts";
import { schedulePattern } from "../windows/schedule.ts";
import { stackMessages } from "./messages.ts";

const Approval = Type.Object(
  {
    required: optional(
      choice(
        ["Never", "OnDestructiveChanges", "Always"],
        "When an update needs an Approval: Never (default); OnDestructiveChanges, if it replaces or deletes resources; or Always, if it changes anything. A destroy is destructive.",
      ),
    ),
    expiresAfterSeconds: optional(
      int64("How long a plan can be approved and applied, in seconds. Defaults to 86400 (one day).", { minimum: 60 }),
    ),
  },
  { description: "Whether people have to approve changes. What is applied is exactly what was approved." },
);

const DriftDetection = Type.Object(
  {
    intervalSeconds: int64("The interval between two drift checks, in seconds.", { minimum: 60 }),
    action: optional(
      choice(
        ["Report", "Correct"],
        "What to do about drift: Report it (default) without changing anything, or Correct it with an update.",
      ),
    ),
  },
  { description: "Compares the resources with the state on a schedule, without changing either." },
);

const UpdateWindow = Type.Object(
  {
    schedule: text("When the window opens: minute, hour, day of month, month and day of week, as in a CronJob.", {
      minLength: 1,
      maxLength: 128,
    }),
    durationSeconds: int64("How long the window stays open, in seconds.", { minimum: 60, maximum: 31_622_400 }),
    timeZone: optional(
      text("The time zone of the schedule, such as Europe/Berlin. Defaults to UTC.", { maxLength: 64 }),
    ),
  },
  {
    description: "A period in which updates may start.",
    ...validatedBy({
      rule: `self.schedule.matches('${schedulePattern}')`,
      message: validationText(stackMessages.invalidSchedule),
      fieldPath: ".schedule",
    }),
  },
);

export const controlFields = {
  suspend: optional(
    flag(
      "Whether the Stack is suspended: nothing is polled, and no update, drift check or destroy starts. A running update finishes.",
    ),
  ),
  approval: optional(Approval),
  driftDetection: optional(DriftDetection),
  updateWindows: optional(
    listOf(UpdateWindow, "Periods in which updates may start. Without any, updates start at any time.", {
      maxItems: 32,
    }),
  ),
  updateTimeoutSeconds: optional(
    int64("How long an update may run, in seconds. After that it is cancelled, and killed if it does not stop.", {
      minimum: 1,
    }),
  ),
  silenceTimeoutSeconds: optional(
    int64("How long an update may run without any output, in seconds, before it is cancelled.", { minimum: 1 }),
  ),
  maxFailures: optional(
    int32("After how many consecutive failures of the same revision to stop retrying. By default, retries continue.", {
      minimum: 1,
    }),
  ),
  successfulUpdatesHistoryLimit: optional(
    int32(
      "How many successful Updates to keep, 10 by default. The last one is always kept. Plans for approvals and drift checks are counted separately.",
      { minimum: 0 },
    ),
  ),
  failedUpdatesHistoryLimit: optional(
    int32("How many failed Updates to keep, 10 by default. The last one is kept until another update has finished.", {
      minimum: 0,
    }),
  ),
  protect: optional(flag("Whether the Stack is protected: its deletion is denied, and nothing is destroyed.")),
};
