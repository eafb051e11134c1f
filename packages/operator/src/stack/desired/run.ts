/** What a Stack contributes to a run. Pure. */
import type { NormalStack, Stack, UpdateType } from "@pko/api";

import { contentHash } from "../../shared/digest.ts";
import { operationSpec } from "./update.ts";
import { workspaceObject } from "./workspace.ts";

/**
 * A digest of everything in the spec that may change what an update does, or whether it needs an approval. It does not contain
 * when and how often updates run, what happens after them, and the revision of the source.
 */
export function runDigest(stack: Stack, spec: NormalStack, type: UpdateType): string {
  const { spec: workspace } = workspaceObject(stack, spec, { origin: {} });
  const { stackName, source, approval } = spec;
  const operation = operationSpec(stack, spec, type);
  return contentHash({ workspace, stackName, source, operation, required: approval?.required ?? null });
}
