/** Views and objects for the tests of pull request previews. */
import { normalizeStack, type Stack, type StackSpec, type StackStatus } from "@pko/api";
import type { PullRequest } from "@pko/forge";

import { previewStack, type Head } from "../preview-stack.ts";
import type { PullRequestsView } from "../view.ts";

export const now = Date.UTC(2030, 0, 1);
export const commits = ["a", "b", "c"].map((letter) => letter.repeat(40)) as [string, string, string];

const spec: StackSpec = {
  stack: "acme/web/prod",
  projectRepo: "https://github.com/acme/web",
  branch: "main",
  pullRequests: { type: "GitHub", secretRef: { name: "forge" } },
};

export const aParent = (changes: Partial<StackSpec> = {}, status: StackStatus = {}): Stack => ({
  apiVersion: "pulumi.com/v1",
  kind: "Stack",
  metadata: { name: "web", namespace: "default", uid: "uid-1", generation: 1 },
  spec: { ...spec, ...changes },
  status: { observedGeneration: 1, conditions: [], ...status },
});

export const aPullRequest = (number: number, changes: Partial<PullRequest> = {}): PullRequest => ({
  number,
  title: "Add a cache",
  url: `https://github.com/acme/web/pull/${number}`,
  head: { ref: `feature-${number}`, commit: commits[0] },
  base: { ref: "main" },
  labels: [],
  isFork: false,
  isDraft: false,
  ...changes,
});

/** A child as the operator has written it. */
export function aPreview(parent: Stack, head: Head, status?: StackStatus): Stack {
  const preview = previewStack(parent, head, undefined);
  return {
    ...preview,
    metadata: { ...preview.metadata, uid: `uid-pr-${head.number}`, generation: 1 },
    ...(status && { status }),
  };
}

export const viewOf = (changes: Partial<PullRequestsView> = {}): PullRequestsView => {
  const { stack = aParent() } = changes;
  return {
    now,
    stack,
    spec: normalizeStack(stack),
    operatorSuspended: false,
    forge: { kind: "listed", pullRequests: [] },
    heads: { unaffected: new Set(), uncompared: new Set() },
    wantedHeads: "none",
    secrets: [],
    previews: [],
    runs: [],
    ...changes,
  };
};
