/** Validation messages for Stacks, shared by the API server's rules and the normalizer. */
import type { ValidationMessage } from "../schema/cel.ts";

export const nameLimit = 42;

export const stackMessages = {
  nameTooLong: {
    message: `must have at most ${nameLimit} characters, because the name of the workspace pod is derived from it`,
    remedy: "choose a shorter name",
  },
  noSpec: { message: "is required", remedy: "set spec.stack and a source" },
  noSource: {
    message: "the program has no source",
    remedy:
      "set one of projectRepo, fluxSource, programRef and workspaceTemplate.spec.local, or copy the program to /share/workspace with workspaceTemplate.spec.initContainers",
  },
  severalSources: {
    message: "the program has more than one source",
    remedy: "keep only one of projectRepo, fluxSource, programRef and workspaceTemplate.spec.local",
  },
  noRevision: {
    message: "projectRepo requires a revision",
    remedy: "set one of branch, tag and commit",
  },
  severalRevisions: {
    message: "branch, tag and commit are mutually exclusive",
    remedy: "keep only one of them",
  },
  revisionWithoutRepository: {
    message: "branch, tag and commit require a Git repository",
    remedy: "set projectRepo, or remove branch, tag and commit",
  },
  filtersWithoutRepository: {
    message: "pathFilters require a Git repository",
    remedy: "set projectRepo, or remove pathFilters",
  },
  reportWithoutCommit: {
    message: "report requires a program from a Git repository, because it is about commits",
    remedy: "set projectRepo, or fluxSource and report.repository; or remove report",
  },
  reportWithoutURL: {
    message: "the forge is unknown without the URL of a Git repository",
    remedy: "set report.url to the root of its API",
  },
  pullRequestsWithoutRepository: {
    message: "pullRequests require a Git repository",
    remedy: "set projectRepo, or remove pullRequests",
  },
  pullRequestsWithoutForge: {
    message: "pullRequests name no forge",
    remedy: "set pullRequests.type and pullRequests.secretRef, or report",
  },
  pullRequestsWithoutBranch: {
    message: "pullRequests need to know the target branch, because the Stack follows none",
    remedy: "set pullRequests.branches",
  },
  pullRequestsWithoutLabels: {
    message: "pull requests at Bitbucket have no labels, so none would be previewed",
    remedy: "remove pullRequests.labels, and use pullRequests.branches",
  },
  rootedFilter: {
    message: "path filters are relative to the root of the repository, without a leading slash or dot",
    remedy: 'write a filter such as "infra/**", or "!infra/docs/**" to exclude files',
  },
  unmatchedFilter: {
    message: "a path filter with a trailing slash, an empty part or an unclosed bracket matches no file",
    remedy: 'write "infra/**" for all files in infra, and close each [ and {',
  },
  negativeResync: {
    message: "must not be negative",
    remedy: "set a number of seconds; values below 60 are treated as 60",
  },
  invalidSchedule: {
    message: "is not a schedule",
    remedy: 'set minute, hour, day of month, month and day of week, such as "0 22 * * MON-FRI"',
  },
  windowNeverOpens: { message: "no such date exists", remedy: "choose a day that the month has" },
  unknownTimeZone: {
    message: "is not the name of a time zone",
    remedy: "use a name of the IANA time zone database, such as Europe/Berlin, or remove this field for UTC",
  },
  unknownReferenceType: {
    message: "is not a supported type of reference",
    remedy: "use Literal, Secret, ConfigMap or StackOutput",
  },
  envReference: {
    message: "type Env is not supported, because it would read the operator's own environment",
    remedy: "use Literal, Secret, ConfigMap or StackOutput",
  },
  fileReference: {
    message: "type FS is not supported, because it would read the operator's own file system",
    remedy: "use Literal, Secret, ConfigMap or StackOutput",
  },
  literalIncomplete: { message: "type Literal requires a literal", remedy: "set literal.value" },
  secretIncomplete: { message: "type Secret requires a Secret and a key", remedy: "set secret.name and secret.key" },
  configMapIncomplete: {
    message: "type ConfigMap requires a ConfigMap and a key",
    remedy: "set configMap.name and configMap.key",
  },
  stackOutputIncomplete: {
    message: "type StackOutput requires a Stack and an output",
    remedy: "set stack and output",
  },
  credentialNotSecret: {
    message: "Git credentials must come from a Secret",
    remedy: "store the value in a Secret, and set type: Secret, secret.name and secret.key",
  },
  otherNamespace: {
    message: "a Stack can read Secrets only in its own namespace",
    remedy: "copy the Secret to the Stack's namespace, and remove this field",
  },
  prerequisiteWithoutName: {
    message: "the prerequisite does not name a Stack",
    remedy: "set name: NAME, or type: Stack and requirement: NAME",
  },
  prerequisiteTwoNames: {
    message: "the prerequisite names a Stack twice",
    remedy: "keep either name, or type: Stack and requirement: NAME",
  },
  prerequisiteType: { message: "is not a supported type of prerequisite", remedy: "set type: Stack, or remove type" },
} as const satisfies Record<string, ValidationMessage>;
