/** The spec of a child Stack that previews another Stack. Pure. */
import type { StackSpec } from "./spec.ts";

/**
 * What decides the result of a preview. Everything that controls when the Stack may run, what it may destroy, and for what
 * it waits, is left out: a prerequisite could even request an update of another Stack.
 */
const copied: ReadonlySet<string> = new Set<keyof StackSpec>([
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
]);

/** One of the three fields. */
export type PreviewRevision = Partial<Pick<StackSpec, "branch" | "tag" | "commit">>;

/** At another revision than the Stack, if one is given. */
export function previewSpec(spec: StackSpec, revision?: PreviewRevision): StackSpec {
  const fields = Object.entries(spec).filter(([field]) => copied.has(field));
  const { branch, tag, commit, ...others } = Object.fromEntries(fields) as unknown as StackSpec;
  return {
    ...others,
    ...(revision ?? definedRevision({ branch, tag, commit })),
    preview: true,
    // A preview must not create the Pulumi stack.
    useLocalStackOnly: true,
  };
}

const definedRevision = (revision: Record<keyof PreviewRevision, string | undefined>): PreviewRevision =>
  Object.fromEntries(Object.entries(revision).filter(([, value]) => value !== undefined));
