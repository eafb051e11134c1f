/**
 * The source of a Stack's program: exactly one of Git, Flux, a Program, and a directory in the workspace's image; or the
 * workspace template provides the program, for example with an init container.
 */
import { Type } from "typebox";

import { isSet, validatedBy, validationText, type CelRule } from "../schema/cel.ts";
import { flag, listOf, optional, text } from "../schema/field.ts";
import { credential } from "./reference.ts";
import { stackMessages as messages } from "./messages.ts";

/** Of a path filter that can match nothing. */
export const rootedPattern = "^!?[.]{0,2}/";
/** Likewise: an empty part, such as after a trailing slash, or a bracket that is neither closed nor escaped. */
export const unmatchedPattern = String.raw`/[.]{0,2}(/|$)|(^|[^\x5c])([[][^\x5d]*|[{][^}]*)$`;

const GitAuth = Type.Object(
  {
    accessToken: optional(credential("An access token for HTTPS.")),
    sshAuth: optional(
      Type.Object(
        {
          sshPrivateKey: credential("The private key."),
          password: optional(credential("The passphrase of the private key.")),
        },
        { description: "An SSH key." },
      ),
    ),
    basicAuth: optional(
      Type.Object(
        { userName: credential("The user name."), password: credential("The password.") },
        { description: "A user name and password for HTTPS." },
      ),
    ),
    githubApp: optional(
      Type.Object(
        {
          appID: credential("The App's ID."),
          installationID: credential("The ID of the App's installation."),
          privateKey: credential("The App's private key in PEM format."),
        },
        { description: "An installation of a GitHub App." },
      ),
    ),
  },
  {
    description:
      "The credentials for the repository. Set one of the fields; if several are set, sshAuth takes precedence over accessToken, githubApp and basicAuth, in this order.",
  },
);

const PathFilters = listOf(
  Type.String({ minLength: 1, maxLength: 512 }),
  "Which files of the repository the Stack depends on, as globs from its root, such as infra/**. With a leading !, files are excluded. A new commit that changes none of these files since the last successful update runs nothing.",
  {
    maxItems: 64,
    ...validatedBy(
      {
        rule: `self.all(filter, !filter.matches('${rootedPattern}'))`,
        message: validationText(messages.rootedFilter),
      },
      {
        rule: `self.all(filter, !filter.matches(r'${unmatchedPattern}'))`,
        message: validationText(messages.unmatchedFilter),
      },
    ),
  },
);

const gitFields = {
  projectRepo: optional(text("The HTTPS or SSH URL of the program's Git repository.")),
  branch: optional(text("The branch to follow, such as main or refs/heads/main. With refs/tags/NAME, follows a tag.")),
  tag: optional(text("The tag to follow, such as v1.0 or refs/tags/v1.0.")),
  commit: optional(text("The full hash of the commit to deploy.")),
  repoDir: optional(text("The directory of the program in the repository.")),
  shallow: optional(flag("Whether to fetch only the commit, without its history.")),
  pathFilters: optional(PathFilters),
  gitAuth: optional(GitAuth),
  gitAuthSecret: optional(
    text(
      "Deprecated: use gitAuth. A Secret with the key accessToken, the keys sshPrivateKey and password, or the keys username and password.",
    ),
  ),
};

const FluxSource = Type.Object(
  {
    sourceRef: Type.Object(
      {
        apiVersion: text("The API version of the source."),
        kind: text("The kind of the source, such as GitRepository, OCIRepository or Bucket."),
        name: text("The name of the source in the Stack's namespace."),
      },
      { description: "The Flux source to follow." },
    ),
    dir: optional(text("The directory of the program in the source.")),
  },
  { description: "Reads the program from a Flux source." },
);

const ProgramRef = Type.Object(
  { name: text("The name of the Program in the Stack's namespace.") },
  { description: "Reads the program from a Program object." },
);

export const sourceFields = {
  ...gitFields,
  fluxSource: optional(FluxSource),
  programRef: optional(ProgramRef),
};

const inTemplate = (field: string): string =>
  `has(self.workspaceTemplate) && has(self.workspaceTemplate.spec) && has(self.workspaceTemplate.spec.${field})`;

const atMostOne = (...facts: readonly string[]): string => `[${facts.join(", ")}].filter(fact, fact).size() <= 1`;

const revision = ["branch", "tag", "commit"].map((field) => isSet(field));
const anyRevision = revision.map((fact) => `(${fact})`).join(" || ");
const repository = isSet("projectRepo");

/**
 * A workspace template may also patch the generated Git or Flux source, so a Git or Flux source in the template counts
 * only if the Stack has no other source. The schema does not describe pod templates: the normalizer checks them.
 */
export const sourceRules: readonly CelRule[] = [
  {
    rule: atMostOne(repository, "has(self.fluxSource)", "has(self.programRef)", inTemplate("local")),
    message: validationText(messages.severalSources),
  },
  {
    rule: [
      `(${repository})`,
      "has(self.fluxSource)",
      "has(self.programRef)",
      ...["local", "git", "flux", "podTemplate"].map((field) => `(${inTemplate(field)})`),
      `(${inTemplate("initContainers")} && self.workspaceTemplate.spec.initContainers.size() > 0)`,
      // The next rules report these.
      anyRevision,
    ].join(" || "),
    message: validationText(messages.noSource),
  },
  { rule: atMostOne(...revision), message: validationText(messages.severalRevisions), fieldPath: ".branch" },
  {
    rule: `!(${repository}) || ${anyRevision}`,
    message: validationText(messages.noRevision),
    fieldPath: ".branch",
    reason: "FieldValueRequired",
  },
  {
    rule: `(${repository}) || !(${anyRevision})`,
    message: validationText(messages.revisionWithoutRepository),
    fieldPath: ".projectRepo",
    reason: "FieldValueRequired",
  },
  {
    rule: `(${repository}) || !has(self.pathFilters) || self.pathFilters.size() == 0`,
    message: validationText(messages.filtersWithoutRepository),
    fieldPath: ".projectRepo",
    reason: "FieldValueRequired",
  },
  {
    rule: `!has(self.report) || (${repository}) || (has(self.fluxSource) && has(self.report.repository))`,
    message: validationText(messages.reportWithoutCommit),
    fieldPath: ".report",
    reason: "FieldValueForbidden",
  },
  {
    rule: `!has(self.report) || (${repository}) || has(self.report.url) || !(self.report.type in ['Gitea', 'BitbucketDataCenter'])`,
    message: validationText(messages.reportWithoutURL),
    fieldPath: ".report.url",
    reason: "FieldValueRequired",
  },
  {
    rule: `(${repository}) || !has(self.pullRequests)`,
    message: validationText(messages.pullRequestsWithoutRepository),
    fieldPath: ".projectRepo",
    reason: "FieldValueRequired",
  },
  {
    rule: "!has(self.pullRequests) || has(self.report) || (has(self.pullRequests.type) && has(self.pullRequests.secretRef))",
    message: validationText(messages.pullRequestsWithoutForge),
    fieldPath: ".pullRequests",
    reason: "FieldValueRequired",
  },
  {
    rule: `!(${repository}) || !has(self.pullRequests) || (${isSet("branch")} && !self.branch.startsWith('refs/tags/')) || (has(self.pullRequests.branches) && self.pullRequests.branches.size() > 0)`,
    message: validationText(messages.pullRequestsWithoutBranch),
    fieldPath: ".pullRequests.branches",
    reason: "FieldValueRequired",
  },
  {
    rule: "!has(self.pullRequests) || !has(self.pullRequests.labels) || self.pullRequests.labels.size() == 0 || !(has(self.pullRequests.type) ? self.pullRequests.type : has(self.report) ? self.report.type : '').startsWith('Bitbucket')",
    message: validationText(messages.pullRequestsWithoutLabels),
    fieldPath: ".pullRequests.labels",
    reason: "FieldValueForbidden",
  },
];
