/** The child Stack of a preview. Pure. */
import { nameLimit, previewSpec, stackKind, type PreviewRevision, type Stack, type StackSpec } from "@pko/api";

import { usageError } from "../errors.ts";

export function childStack(parent: Stack, ref: string | undefined, suffix: string): Stack {
  const { apiVersion, kind } = stackKind;
  const { name = "", namespace = "", uid = "" } = parent.metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name: childName(name, `-preview-${suffix}`),
      namespace,
      // If this command is killed, the child is deleted with the Stack at the latest.
      ownerReferences: [{ apiVersion, kind, name, uid, controller: false, blockOwnerDeletion: false }],
    },
    spec: { ...previewSpec(parent.spec, revisionAt(parent.spec, ref)), maxFailures: 1 },
  };
}

/** A part of a name between dots must not start with a hyphen. */
const childName = (parent: string, suffix: string): string =>
  `${parent.slice(0, nameLimit - suffix.length).replace(/[.-]+$/, "")}${suffix}`;

const isCommit = (ref: string): boolean => /^[0-9a-f]{40}$/.test(ref);
const isTag = (ref: string): boolean => ref.startsWith("refs/tags/");

const fieldFor = (ref: string): keyof PreviewRevision => (isCommit(ref) ? "commit" : isTag(ref) ? "tag" : "branch");

function revisionAt({ projectRepo }: StackSpec, ref: string | undefined): PreviewRevision | undefined {
  if (ref === undefined) return undefined;
  if (!projectRepo) {
    throw usageError("--ref needs a Stack whose program comes from Git (spec.projectRepo).", "Leave out --ref.");
  }
  return { [fieldFor(ref)]: ref };
}
