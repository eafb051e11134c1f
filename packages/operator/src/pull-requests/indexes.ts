/** Indexes of the store of Stacks, for previews of pull requests. */
import type { Stack } from "@pko/api";
import type { IndexFunction } from "@pko/kube";

import { parentOf, previewOwnerIndex, pullRequestNumberOf } from "../shared/pull-request-preview.ts";

export const previewIndexers: Readonly<Record<string, IndexFunction<Stack>>> = {
  [previewOwnerIndex](stack) {
    const parent = parentOf(stack);
    return parent && pullRequestNumberOf(stack) !== undefined ? [parent.uid] : [];
  },
};
