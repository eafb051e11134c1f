/** Stacks that the operator creates to preview pull requests. */
import { pullRequestAnnotation, type Stack } from "@pko/api";
import { refKey, type Store } from "@pko/kube";

/** The number of the pull request. Undefined for a Stack that previews none. */
export function pullRequestNumberOf({ metadata }: Pick<Stack, "metadata">): number | undefined {
  const text = metadata.annotations?.[pullRequestAnnotation] ?? "";
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : undefined;
}

/** The status of a commit at the forge: the same for all pull requests of a Stack, so that a forge can require it. */
export const previewContext = (namespace: string, stack: string): string => `pulumi/${namespace}/${stack}/preview`;

/** Descriptions of that status, for a preview that was cancelled. */
export const closedWithoutResult = "no result: the pull request was closed or is no longer selected";
export const movedWithoutResult = "no result: the pull request has a new head";

/** A Stack that deploys is not one, whatever its annotations. */
export function isPullRequestPreview(stack: Stack): boolean {
  const spec: Partial<Stack["spec"]> | undefined = stack.spec;
  return spec?.preview === true && pullRequestNumberOf(stack) !== undefined;
}

/** The Stack whose pull request the Stack previews. */
export const parentOf = ({ metadata }: Pick<Stack, "metadata">) =>
  metadata.ownerReferences?.find(({ kind, controller }) => kind === "Stack" && controller);

/** An index of the store: Stacks that preview a pull request, by the UID of the Stack that controls them. */
export const previewOwnerIndex = "previewOwner";

export const isDeleting = ({ metadata }: Pick<Stack, "metadata">): boolean => metadata.deletionTimestamp !== undefined;

/** Whether the Stack previews pull requests. It may be suspended. */
export function wantsPreviews(stack: Stack): boolean {
  const spec: Partial<Stack["spec"]> | undefined = stack.spec;
  return spec?.pullRequests !== undefined && !isDeleting(stack);
}

/**
 * Whether the Stack previews a pull request, is being deleted, and no other Stack reports that its run has no result: one that still
 * previews pull requests does that itself.
 */
export function isAbandoned(stacks: Pick<Store<Stack>, "get">, stack: Stack): boolean {
  const owner = parentOf(stack);
  if (!owner || !isDeleting(stack) || !isPullRequestPreview(stack)) return false;
  const parent = stacks.get(refKey({ namespace: stack.metadata.namespace ?? "", name: owner.name }));
  return parent?.metadata.uid !== owner.uid || !wantsPreviews(parent);
}
