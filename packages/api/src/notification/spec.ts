/** The spec and status of a Notification. */
import { Type, type Static } from "typebox";

import { conditionTypes, notificationConditions } from "../conditions.ts";
import { validatedBy } from "../schema/cel.ts";
import { choice, flag, int32, int64, listOf, optional, text, time } from "../schema/field.ts";
import { conditionsOf } from "../shared/condition.ts";
import { occurrenceKinds, severities } from "./kinds.ts";

const NotificationType = choice(
  ["CloudEvents", "Slack", "Teams"],
  "The format of the messages: CloudEvents 1.0 in JSON for any HTTP sink, Slack for incoming webhooks of Slack and compatible services such as Mattermost, Teams for workflows of Microsoft Teams.",
);
export type NotificationType = Static<typeof NotificationType>;

const SecretRef = Type.Object(
  { name: text("The name of the Secret in the Notification's namespace.", { minLength: 1, maxLength: 253 }) },
  {
    description:
      "The Secret with the key url, and optionally token (sent as a bearer token) and caCert (CA certificates in PEM, for a server with a private CA).",
  },
);

const Filter = Type.Object(
  {
    severities: optional(
      listOf(choice([...severities], "A severity."), "The severities to report. By default, all.", { maxItems: 3 }),
    ),
    kinds: optional(
      listOf(choice([...occurrenceKinds], "A kind of event."), "What to report. By default, everything.", {
        maxItems: 20,
      }),
    ),
    stacks: optional(
      listOf(
        Type.String({ minLength: 1, maxLength: 253 }),
        "The names of the Stacks to report about, as globs such as web-*; with a leading !, Stacks are excluded. By default, all of the namespace.",
        { maxItems: 100 },
      ),
    ),
  },
  { description: "What to report. An event must match all fields that are set." },
);
export type NotificationFilter = Static<typeof Filter>;

export const NotificationSpec = Type.Object(
  {
    type: NotificationType,
    url: optional(
      text(
        "The URL of a CloudEvents sink, if it is not secret. Slack and Teams need secretRef: who knows the URL of an incoming webhook can use it.",
        {
          minLength: 1,
          maxLength: 2048,
        },
      ),
    ),
    secretRef: optional(SecretRef),
    filter: optional(Filter),
    groupSeconds: optional(
      int32(
        "How long to wait for more events before a message is sent, in seconds, so that many events result in one message. Defaults to 30.",
        { minimum: 0, maximum: 3600 },
      ),
    ),
    clusterName: optional(
      text("The name of this cluster, shown in messages.", {
        minLength: 1,
        maxLength: 63,
        pattern: "^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
      }),
    ),
    suspend: optional(
      flag("Whether to send nothing. What happens while a Notification is suspended is not reported later."),
    ),
  },
  {
    description: "Where to send which messages.",
    ...validatedBy(
      {
        rule: "has(self.url) || has(self.secretRef)",
        message: "is required; create a Secret with the key url and name it here, or set spec.url for CloudEvents",
        fieldPath: ".secretRef",
        reason: "FieldValueRequired",
      },
      {
        rule: "!has(self.url) || self.type == 'CloudEvents'",
        message:
          "is only allowed for CloudEvents, because the URL of a chat is a secret; store it in the Secret of spec.secretRef",
        fieldPath: ".url",
        reason: "FieldValueForbidden",
      },
      {
        rule: "!has(self.url) || self.url.matches('^https?://[^/?#@]+([/?#].*)?$')",
        message:
          "must start with https:// or http:// and contain no user or password; store credentials in the Secret of spec.secretRef",
        fieldPath: ".url",
        reason: "FieldValueInvalid",
      },
    ),
  },
);
export type NotificationSpec = Static<typeof NotificationSpec>;

const SentMinute = Type.Object(
  {
    time: time("The start of the minute."),
    marks: text("The marks of the events of this minute, 8 characters each."),
  },
  { description: "The events of one minute that are done." },
);

const Cursor = Type.Object(
  {
    time: time("Earlier events are done."),
    done: optional(listOf(SentMinute, "Later events that are done, by the minute in which they happened.")),
  },
  { description: "Which events have been sent or dropped, so that a restart of the operator repeats none." },
);
export type NotificationCursor = Static<typeof Cursor>;

/** What cannot be read from objects again, because they are deleted. */
const Unsent = Type.Object(
  {
    id: text("Identifies the event."),
    kind: choice([...occurrenceKinds], "The kind of the event."),
    time: time("The time of the event."),
    stack: text("The name of the Stack."),
    message: text("What happened."),
    update: optional(text("The name of the Update.")),
    operation: optional(text("The operation of the Update.")),
    permalink: optional(text("The URL of the operation in Pulumi Cloud.")),
  },
  { description: "An event that has not been sent yet, and whose objects may be deleted before it is." },
);
export type UnsentNotification = Static<typeof Unsent>;

const Delivery = Type.Object(
  {
    time: time("The time of the delivery."),
    events: int64("The number of events in the message."),
  },
  { description: "The last message that was delivered." },
);

const Failure = Type.Object(
  {
    time: time("The time of the failure."),
    message: text("Why the message was not delivered."),
  },
  { description: "The last delivery that failed." },
);

export const NotificationStatus = Type.Object(
  {
    observedGeneration: optional(int64("The generation of the Notification that the status is based on.")),
    cursor: optional(Cursor),
    unsent: optional(listOf(Unsent, "Events of deleted Stacks that have not been sent yet.")),
    lastDelivery: optional(Delivery),
    lastFailure: optional(Failure),
    delivered: optional(int64("The number of events that were delivered.")),
    dropped: optional(int64("The number of events that were not delivered within an hour, and are lost.")),
    conditions: optional(conditionsOf(conditionTypes(notificationConditions))),
  },
  { description: "The observed state of the Notification." },
);
export type NotificationStatus = Static<typeof NotificationStatus>;
