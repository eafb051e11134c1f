import { expect, test } from "bun:test";
import type { NormalPullRequests } from "@pko/api";
import type { PullRequest } from "@pko/forge";

import { selectPullRequests } from "./selection.ts";
import { aPullRequest } from "./testing/views.ts";

const forge = { type: "GitHub", secretRef: { name: "forge" } } as const;
const wanted: NormalPullRequests = {
  forge,
  labels: [],
  branches: ["main"],
  limit: 10,
  everyMs: 60_000,
  allowForks: false,
};
const short = { head: { ref: "x", commit: "abc1234" } };
const into = (ref: string) => ({ base: { ref } });

const cases: readonly (readonly [string, Partial<NormalPullRequests>, readonly PullRequest[], readonly number[]])[] = [
  ["those into the branch", {}, [aPullRequest(1), aPullRequest(2, into("other"))], [1]],
  ["those with a number", {}, [aPullRequest(1), aPullRequest(Number.NaN), aPullRequest(-2), aPullRequest(1e300)], [1]],
  [
    "those into branches that match",
    { branches: ["release/*", "!release/old"] },
    [aPullRequest(1, into("release/1")), aPullRequest(2, into("release/old")), aPullRequest(3)],
    [1],
  ],
  [
    "those with any of the labels",
    { labels: ["preview", "infra"] },
    [aPullRequest(1, { labels: ["infra", "x"] }), aPullRequest(2, { labels: ["x"] }), aPullRequest(3)],
    [1],
  ],
  ["none from forks", {}, [aPullRequest(1, { isFork: true }), aPullRequest(2)], [2]],
  ["those from forks, if allowed", { allowForks: true }, [aPullRequest(1, { isFork: true })], [1]],
  ["the newest within the limit", { limit: 2 }, [aPullRequest(1), aPullRequest(3), aPullRequest(2)], [3, 2]],
  ["drafts, too", {}, [aPullRequest(1, { isDraft: true })], [1]],
  ["only those whose whole commit is known", {}, [aPullRequest(1, short), aPullRequest(2)], [2]],
];
test.each(cases)("previews %s", (...row) => {
  const [, changes, open, expected] = row;
  expect(selectPullRequests(open, { ...wanted, ...changes }).selected.map(({ number }) => number)).toEqual([
    ...expected,
  ]);
});

test("counts what exceeds the limit, what comes from forks, and what has no commit", () => {
  const open = [
    aPullRequest(1),
    aPullRequest(2),
    aPullRequest(3),
    aPullRequest(4, { isFork: true }),
    aPullRequest(5, short),
  ];
  const counts = { beyondLimit: 2, fromForks: 1, withoutCommit: 1 };
  expect(selectPullRequests(open, { ...wanted, limit: 1 })).toMatchObject(counts);
});
