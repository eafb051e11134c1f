/** Indexes of the store of Stacks, for previews of pull requests. */
import type { Stack } from "@pko/api";
import type { IndexFunction } from "@pko/kube";

import { pullRequestNumberOf } from "../shared/pull-request-preview.ts";

/** Stacks that preview a pull request, by the UID of the Stack that controls them. */
export const previewOwnerIndex = "previewOwner";

export const previewIndexers: Readonly<Record<string, IndexFunction<Stack>>> = {
  [previewOwnerIndex](stack) {
    const controller = stack.metadata.ownerReferences?.find((each) => each.controller);
    return controller && pullRequestNumberOf(stack) !== undefined ? [controller.uid] : [];
  },
};
