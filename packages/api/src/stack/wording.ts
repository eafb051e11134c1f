/** What can be wrong with a Stack. The API server's rules and the normaliser say it in the same words. */
import type { Wording } from "../schema/cel.ts";

export const nameLimit = 42;

export const stackWording = {
  nameTooLong: {
    message: `the name is longer than ${nameLimit} characters, and the workspace's pod is named after it`,
    remedy: "choose a shorter name",
  },
  noSpec: { message: "there is no spec", remedy: "set spec.stack and a source" },
  noSource: {
    message: "no source for the program",
    remedy:
      "set one of projectRepo, fluxSource, programRef and workspaceTemplate.spec.local, or put the program into /share/workspace by workspaceTemplate.spec.initContainers",
  },
  severalSources: {
    message: "more than one source for the program",
    remedy: "keep one of projectRepo, fluxSource, programRef and workspaceTemplate.spec.local",
  },
  noRevision: {
    message: "projectRepo is given without a revision",
    remedy: "set one of branch, tag and commit",
  },
  severalRevisions: {
    message: "more than one revision is given",
    remedy: "keep one of branch, tag and commit",
  },
  revisionWithoutRepository: {
    message: "branch, tag and commit belong to a Git repository, and there is none",
    remedy: "set projectRepo, or remove branch, tag and commit",
  },
  negativeResync: {
    message: "must not be negative",
    remedy: "give a number of seconds; less than 60 counts as 60",
  },
  unknownReferenceType: {
    message: "is not a type of reference",
    remedy: "use Literal, Secret, ConfigMap or StackOutput",
  },
  envReference: {
    message: "type Env would read the operator's own environment, which holds nothing for workspaces",
    remedy: "use Literal, Secret, ConfigMap or StackOutput",
  },
  fileReference: {
    message: "type FS would read the operator's own file system, which holds nothing for workspaces",
    remedy: "use Literal, Secret, ConfigMap or StackOutput",
  },
  literalIncomplete: { message: "type Literal needs a literal", remedy: "set literal.value" },
  secretIncomplete: { message: "type Secret needs a secret", remedy: "set secret.name and secret.key" },
  configMapIncomplete: { message: "type ConfigMap needs a configMap", remedy: "set configMap.name and configMap.key" },
  stackOutputIncomplete: {
    message: "type StackOutput needs a Stack and one of its outputs",
    remedy: "set stack and output",
  },
  credentialNotSecret: {
    message: "credentials for Git come from Secrets alone",
    remedy: "put the value into a Secret and set type: Secret, secret.name and secret.key",
  },
  otherNamespace: {
    message: "a Stack reads Secrets of its own namespace alone",
    remedy: "copy the Secret into the Stack's namespace and remove the namespace here",
  },
  prerequisiteWithoutName: {
    message: "the prerequisite names no Stack",
    remedy: "set name: NAME, or type: Stack with requirement: NAME",
  },
  prerequisiteTwoNames: {
    message: "the prerequisite names a Stack twice",
    remedy: "keep name, or keep type: Stack with requirement: NAME",
  },
  prerequisiteType: { message: "is not a type of prerequisite", remedy: "set type: Stack, or remove type" },
} as const satisfies Record<string, Wording>;
