/** Previews of pull requests: which ones, and with what they run. */
import { Type, type Static } from "typebox";

import { atomicList, choice, flag, int32, int64, listOf, mapOf, optional, text, texts } from "../schema/field.ts";
import { forgeFields } from "../shared/forge.ts";
import { ValueReference } from "./reference.ts";

/** How many pull requests are previewed at the same time. */
export const defaultPullRequestLimit = 10;
export const maxPullRequestLimit = 50;
export const defaultPullRequestSeconds = 60;

const globs = (description: string) =>
  listOf(Type.String({ minLength: 1, maxLength: 256 }), description, { maxItems: 32, ...atomicList });

export const PullRequests = Type.Object(
  {
    type: optional(forgeFields.type),
    url: forgeFields.url,
    repository: forgeFields.repository,
    secretRef: optional(forgeFields.secretRef),
    labels: optional(globs("Only pull requests with at least one of these labels. By default, labels do not matter.")),
    branches: optional(
      globs(
        "Only pull requests into these branches, as globs such as release/*; with a leading !, branches are excluded. Defaults to the branch that the Stack follows.",
      ),
    ),
    limit: optional(
      int32(
        `How many pull requests are previewed: the newest ones. Defaults to ${defaultPullRequestLimit}, and is at most ${maxPullRequestLimit}.`,
        { minimum: 1, maximum: maxPullRequestLimit },
      ),
    ),
    intervalSeconds: optional(
      int64(
        `The interval between two requests for the list of pull requests, in seconds. Minimum and default: ${defaultPullRequestSeconds}. A webhook causes a request at once.`,
        { minimum: defaultPullRequestSeconds },
      ),
    ),
    allowForks: optional(
      flag(
        "Whether to preview pull requests from forks. A preview runs the code of the pull request with the credentials of the preview, so by default only branches of the repository itself are previewed.",
      ),
    ),
    serviceAccountName: optional(
      text("The service account of the workspace pods of previews. Defaults to the one of the Stack."),
    ),
    envRefs: optional(
      mapOf(
        ValueReference,
        "Environment variables of previews by name, instead of those of the Stack (envRefs, envs, envSecrets and accessTokenSecret).",
        // The API server limits the cost of the rules of all entries together.
        { maxProperties: 64 },
      ),
    ),
    environment: optional(texts("Pulumi ESC environments of previews, instead of those of the Stack.", atomicList)),
  },
  {
    description:
      "Previews the open pull requests of the Stack's Git repository, each with a child Stack that changes neither resources nor state. The forge (type, url, repository and secretRef) defaults to that of report.",
  },
);
export type PullRequests = Static<typeof PullRequests>;

const PullRequestPreview = Type.Object(
  {
    number: int64("The number of the pull request."),
    url: optional(text("The page of the pull request.")),
    commit: text("The commit that is previewed: the head of the pull request."),
    stack: text("The name of the child Stack that previews it."),
    state: choice(
      ["Pending", "Running", "Succeeded", "Failed", "Blocked"],
      "The state of the preview of this commit: Pending, Running, Succeeded, Failed, or Blocked if another owner's Stack has the name of the child.",
    ),
  },
  { description: "The preview of one pull request." },
);
export type PullRequestPreview = Static<typeof PullRequestPreview>;

/** More than can be cancelled at once. */
export const maxCancelledPreviews = 100;

const CancelledPreview = Type.Object(
  {
    number: int64("The number of the pull request."),
    commit: text("The commit that was previewed."),
  },
  { description: "A preview that ended without a result." },
);
export type CancelledPreview = Static<typeof CancelledPreview>;

export const cancelledPreviews = listOf(
  CancelledPreview,
  "Previews that ended without a result, because their pull request was closed or has a new head, until the forge shows that.",
  { maxItems: maxCancelledPreviews },
);

export const pullRequestPreviews = listOf(
  PullRequestPreview,
  "The previews of pull requests, the newest pull request first.",
  { maxItems: maxPullRequestLimit },
);
