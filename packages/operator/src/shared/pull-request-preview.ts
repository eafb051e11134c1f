/** Stacks that the operator creates to preview pull requests. */
import { pullRequestAnnotation, type Stack } from "@pko/api";

/** The number of the pull request. Undefined for a Stack that previews none. */
export function pullRequestNumberOf({ metadata }: Pick<Stack, "metadata">): number | undefined {
  const text = metadata.annotations?.[pullRequestAnnotation] ?? "";
  return /^[1-9]\d{0,9}$/.test(text) ? Number(text) : undefined;
}

/** The status of a commit at the forge: the same for all pull requests of a Stack, so that a forge can require it. */
export const previewContext = (namespace: string, stack: string): string => `pulumi/${namespace}/${stack}/preview`;

/** A Stack that deploys is not one, whatever its annotations. */
export function isPullRequestPreview(stack: Stack): boolean {
  const spec: Partial<Stack["spec"]> | undefined = stack.spec;
  return spec?.preview === true && pullRequestNumberOf(stack) !== undefined;
}

/** The Stack whose pull request the Stack previews. */
export const parentOf = ({ metadata }: Pick<Stack, "metadata">) =>
  metadata.ownerReferences?.find(({ kind, controller }) => kind === "Stack" && controller);

export const isDeleting = ({ metadata }: Pick<Stack, "metadata">): boolean => metadata.deletionTimestamp !== undefined;

/** Whether the Stack previews pull requests. It may be suspended. */
export function wantsPreviews(stack: Stack): boolean {
  const spec: Partial<Stack["spec"]> | undefined = stack.spec;
  return spec?.pullRequests !== undefined && !isDeleting(stack);
}
