/** Indexes of the store of Stacks, for previews of pull requests. */
import type { Stack } from "@pko/api";
import type { IndexFunction } from "@pko/kube";

import { parentOf, pullRequestNumberOf } from "../shared/pull-request-preview.ts";

/** Stacks that preview a pull request, by the UID of the Stack that controls them. */
export const previewOwnerIndex = "previewOwner";

export const previewIndexers: Readonly<Record<string, IndexFunction<Stack>>> = {
  [previewOwnerIndex](stack) {
    const parent = parentOf(stack);
    return parent && pullRequestNumberOf(stack) !== undefined ? [parent.uid] : [];
  },
};
