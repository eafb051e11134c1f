import { expect, test } from "bun:test";
import { manualClock } from "@pko/kube";

import { gitPoller, type GitFollow } from "./git-poller.ts";

const follow: GitFollow = {
  url: "https://git.example/team/web",
  credentials: { kind: "none" },
  ref: { kind: "branch", name: "main" },
  everyMs: 60_000,
  request: "1",
};

test.each([3_600_000, -3_600_000])("polls on schedule when the wall clock is set by %d ms", async (step) => {
  const clock = manualClock();
  const polledAt: number[] = [];
  const start = clock.monotonic();
  const list = async () => {
    polledAt.push(clock.monotonic() - start);
    return { kind: "listed", commits: new Map([["refs/heads/main", "c1"]]) } as const;
  };
  const poller = gitPoller({ list, wake: () => undefined, clock, random: () => 0 });
  poller.follow("team/web", follow);
  await clock.advance(1000);
  clock.stepWallClock(step);
  // A second Stack makes the poller compute the schedule again.
  poller.follow("team/api", follow);
  await clock.advance(120_000);
  poller.stop();
  expect(polledAt).toEqual([50, 60_050, 120_050]);
});
