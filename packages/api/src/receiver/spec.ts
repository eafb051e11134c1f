/** The spec and status of a Receiver. */
import { Type, type Static } from "typebox";

import { conditionTypes, receiverConditions } from "../conditions.ts";
import { choice, int64, listOf, optional, text, time } from "../schema/field.ts";
import { conditionsOf } from "../shared/condition.ts";

const ReceiverType = choice(
  ["GitHub", "GitLab", "Gitea", "Bitbucket", "BitbucketDataCenter", "AzureDevOps", "Generic"],
  "Who sends the webhooks, and so how they are signed: GitHub, GitLab, Gitea (also Forgejo), Bitbucket (Cloud), BitbucketDataCenter, AzureDevOps, or Generic for any other sender.",
);
export type ReceiverType = Static<typeof ReceiverType>;

const SecretRef = Type.Object(
  {
    name: text("The name of the Secret in the Receiver's namespace.", { minLength: 1, maxLength: 253 }),
    key: optional(text("The key of the secret in the Secret. Defaults to token.", { minLength: 1, maxLength: 253 })),
  },
  { description: "The secret that the sender knows, too. It needs at least 16 characters." },
);

const Filter = Type.Object(
  {
    repositories: optional(
      listOf(
        Type.String({ minLength: 1, maxLength: 1024 }),
        "URLs of the repositories to accept webhooks for. By default, all that Stacks of the namespace follow.",
        { maxItems: 100 },
      ),
    ),
    refs: optional(
      listOf(
        Type.String({ minLength: 1, maxLength: 512 }),
        "Refs to accept webhooks for, as globs such as refs/heads/*; with a leading !, refs are excluded. By default, all.",
        { maxItems: 100 },
      ),
    ),
  },
  { description: "Which webhooks to accept. Others are ignored." },
);

export const ReceiverSpec = Type.Object(
  { type: ReceiverType, secretRef: SecretRef, filter: optional(Filter) },
  { description: "Where webhooks come from, and how they are verified." },
);
export type ReceiverSpec = Static<typeof ReceiverSpec>;

const Delivery = Type.Object(
  {
    time: time("The time of the delivery."),
    repository: optional(text("The repository that it was about.")),
    stacks: optional(int64("The number of Stacks whose repository was polled because of it.")),
  },
  { description: "The last verified webhook. Recorded at most once a minute." },
);
export type ReceiverDelivery = Static<typeof Delivery>;

const Rejection = Type.Object(
  {
    time: time("The time of the request."),
    reason: text("Why it was rejected, as in the metric webhook_requests_total."),
  },
  { description: "The last request to the Receiver's path that was rejected. Recorded at most once a minute." },
);
export type ReceiverRejection = Static<typeof Rejection>;

export const ReceiverStatus = Type.Object(
  {
    observedGeneration: optional(int64("The generation of the Receiver that the status is based on.")),
    path: optional(text("The path of the URL for the sender, after the address of the operator's webhook endpoint.")),
    lastDelivery: optional(Delivery),
    lastRejection: optional(Rejection),
    conditions: optional(conditionsOf(conditionTypes(receiverConditions))),
  },
  { description: "The observed state of the Receiver." },
);
export type ReceiverStatus = Static<typeof ReceiverStatus>;
