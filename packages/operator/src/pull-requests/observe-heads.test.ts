import { expect, test } from "bun:test";
import { normalizeStack, type StackSpec } from "@pko/api";
import type { Client } from "@pko/kube";

import { observeHeads } from "./observe-heads.ts";
import { aParent, aPullRequest, commits } from "./testing/views.ts";

const [first, second] = commits;
const open = [aPullRequest(1), aPullRequest(2, { head: { ref: "x", commit: second } })];
const filters: Partial<StackSpec> = { pathFilters: ["web/**"] };
const withSecret: Partial<StackSpec> = {
  ...filters,
  gitAuth: { accessToken: { type: "Secret", secret: { name: "git", key: "token" } } },
};

/** No Secret exists, and the first head changes nothing. */
async function observed(changes: Partial<StackSpec>, lastSuccessfulCommit?: string, listed = open) {
  const stack = aParent(changes, lastSuccessfulCommit === undefined ? {} : { lastUpdate: { lastSuccessfulCommit } });
  const spec = normalizeStack(stack);
  if (!spec.ok) throw new Error("the spec is invalid");
  const client = { find: async () => undefined } as unknown as Client;
  const comparisons = { latest: () => new Map([[first, false]]) };
  const subject = { key: "default/web", stack, spec: spec.value, open: listed };
  return await observeHeads({ client, comparisons }, subject, new AbortController().signal);
}

test("only heads that are not compared yet are undecided", async () => {
  const { heads, wantedHeads } = await observed(filters, "c0");
  expect(heads).toEqual({ unaffected: new Set([first]), uncompared: new Set([second]) });
  expect(wantedHeads).toMatchObject({ from: "c0", heads: [second, first], pathFilters: ["web/**"] });
});

test("without the credentials of the repository, what is known stays, and the other heads count as changes", async () => {
  const { heads, wantedHeads } = await observed(withSecret, "c0");
  expect(heads).toEqual({ unaffected: new Set([first]), uncompared: new Set() });
  expect(wantedHeads).toBe("unchanged");
});

test.each([
  ["path filters", {}, "c0"],
  ["a deployed commit", filters, undefined],
] as const)("without %s, nothing is compared", async (_, changes, commit) => {
  const { heads, wantedHeads } = await observed(changes, commit);
  expect([heads.unaffected.size, heads.uncompared.size, wantedHeads]).toEqual([0, 0, "none"]);
});

test("all heads are compared, however many are listed and whatever the limit of previews is", async () => {
  const commits = Array.from({ length: 300 }, (_, index) => (index + 1).toString(16).padStart(40, "0"));
  const listed = commits.map((commit, index) => aPullRequest(index + 1, { head: { ref: "x", commit } }));
  const { heads, wantedHeads } = await observed(filters, "c0", listed);
  expect(heads.uncompared.size).toBe(300);
  expect(wantedHeads).toMatchObject({ heads: commits.toReversed() });
});
