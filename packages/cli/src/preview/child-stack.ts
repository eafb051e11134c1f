/** The child Stack of a preview. Pure. */
import { nameLimit, stackKind, type Stack, type StackSpec } from "@pko/api";

import { usageError } from "../errors.ts";

/**
 * What decides the result of a preview. Everything that controls when the Stack may run, what it may destroy, and for what
 * it waits, is left out: a prerequisite could even request an update of another Stack.
 */
const copied = [
  "stack",
  "projectRepo",
  "branch",
  "tag",
  "commit",
  "repoDir",
  "shallow",
  "gitAuth",
  "gitAuthSecret",
  "fluxSource",
  "programRef",
  "config",
  "configRef",
  "configRefs",
  "secrets",
  "secretsRef",
  "secretsProvider",
  "backend",
  "envs",
  "envSecrets",
  "envRefs",
  "accessTokenSecret",
  "oidc",
  "environment",
  "targets",
  "targetDependents",
  "refresh",
  "updateTimeoutSeconds",
  "silenceTimeoutSeconds",
  "serviceAccountName",
  "workspaceTemplate",
  "updateTemplate",
] as const;

const isCopied = (field: string): boolean => copied.some((each) => each === field);

export function childStack(parent: Stack, ref: string | undefined, suffix: string): Stack {
  const { apiVersion, kind } = stackKind;
  const { name = "", namespace = "", uid = "" } = parent.metadata;
  const kept = Object.fromEntries(Object.entries(parent.spec).filter(([field]) => isCopied(field)));
  const spec = {
    ...(kept as unknown as StackSpec),
    ...sourceAt(parent.spec, ref),
    preview: true,
    // A preview must not create the Pulumi stack.
    useLocalStackOnly: true,
    maxFailures: 1,
  };
  return {
    apiVersion,
    kind,
    metadata: {
      name: childName(name, `-preview-${suffix}`),
      namespace,
      // If this command is killed, the child is deleted with the Stack at the latest.
      ownerReferences: [{ apiVersion, kind, name, uid, controller: false, blockOwnerDeletion: false }],
    },
    spec: ref === undefined ? spec : withoutRevisions(spec, ref),
  };
}

/** A part of a name between dots must not start with a hyphen. */
const childName = (parent: string, suffix: string): string =>
  `${parent.slice(0, nameLimit - suffix.length).replace(/[.-]+$/, "")}${suffix}`;

const isCommit = (ref: string): boolean => /^[0-9a-f]{40}$/.test(ref);
const isTag = (ref: string): boolean => ref.startsWith("refs/tags/");

type Revision = "branch" | "tag" | "commit";
const fieldFor = (ref: string): Revision => (isCommit(ref) ? "commit" : isTag(ref) ? "tag" : "branch");

function sourceAt({ projectRepo }: StackSpec, ref: string | undefined): Partial<StackSpec> {
  if (ref === undefined) return {};
  if (!projectRepo) {
    throw usageError("--ref needs a Stack whose program comes from Git (spec.projectRepo).", "Leave out --ref.");
  }
  return { [fieldFor(ref)]: ref };
}

/** Only one of the three may be set. */
function withoutRevisions(spec: StackSpec, ref: string): StackSpec {
  const others = (["branch", "tag", "commit"] as const).filter((field) => field !== fieldFor(ref));
  return Object.fromEntries(
    Object.entries(spec).filter(([field]) => !others.some((other) => other === field)),
  ) as unknown as StackSpec;
}
