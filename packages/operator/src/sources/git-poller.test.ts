import { describe, expect, test } from "bun:test";
import { manualClock } from "@pko/kube";

import { inProcess } from "./git-lister.ts";
import { gitPoller, type GitFollow } from "./git-poller.ts";

const follow: GitFollow = {
  url: "https://git.example/team/web",
  credentials: { kind: "none" },
  ref: { kind: "branch", name: "main" },
  everyMs: 60_000,
  request: "1",
};

const pending = { kind: "pending" } as const;

test.each([3_600_000, -3_600_000])("polls on schedule when the wall clock is set by %d ms", async (step) => {
  const clock = manualClock();
  const polledAt: number[] = [];
  const start = clock.monotonic();
  const list = async () => {
    polledAt.push(clock.monotonic() - start);
    return { kind: "listed", commits: new Map([["refs/heads/main", "c1"]]) } as const;
  };
  const poller = gitPoller({ lister: inProcess(list), wake: () => undefined, clock, random: () => 0 });
  poller.follow("team/web", follow, pending);
  await clock.advance(1000);
  clock.stepWallClock(step);
  // A second Stack makes the poller compute the schedule again.
  poller.follow("team/api", follow, poller.latest("team/api", follow));
  await clock.advance(120_000);
  poller.stop();
  expect(polledAt).toEqual([50, 60_050, 120_050]);
});

describe("reading the latest result", () => {
  function polled() {
    const clock = manualClock();
    const woken: string[] = [];
    let polls = 0;
    const list = async () => {
      polls++;
      return { kind: "listed", commits: new Map([["refs/heads/main", "c1"]]) } as const;
    };
    const poller = gitPoller({ lister: inProcess(list), wake: (key) => woken.push(key), clock, random: () => 0 });
    return { clock, poller, woken, polls: () => polls };
  }
  const found = { kind: "found", commit: "c1" } as const;

  test("starts no poll and sets no timer", async () => {
    const { clock, poller, polls } = polled();
    expect(poller.latest("team/web", follow)).toEqual(pending);
    await clock.advance(600_000);
    expect([polls(), clock.pending]).toEqual([0, 0]);
  });

  test("finds the result of another Stack, unless it is older than the interval", async () => {
    const { clock, poller } = polled();
    poller.follow("team/web", { ...follow, everyMs: 600_000 }, pending);
    await clock.advance(1000);
    expect(poller.latest("team/api", follow)).toEqual(found);
    await clock.advance(60_000);
    expect(poller.latest("team/api", follow)).toEqual(pending);
  });

  test("is pending for a new request, until a poll that starts after the Stack follows again", async () => {
    const { clock, poller, woken } = polled();
    poller.follow("team/web", follow, pending);
    await clock.advance(1000);
    const requested = { ...follow, request: "2" };
    expect(poller.latest("team/web", requested)).toEqual(pending);
    poller.follow("team/web", requested, pending);
    await clock.advance(1000);
    expect(poller.latest("team/web", requested)).toEqual(found);
    expect(woken).toEqual(["team/web", "team/web"]);
  });

  test("and following afterwards wakes a Stack if a poll has ended in between", async () => {
    const { clock, poller, woken } = polled();
    const seen = poller.latest("team/api", follow);
    poller.follow("team/web", follow, pending);
    await clock.advance(1000);
    poller.follow("team/api", follow, seen);
    expect(woken).toEqual(["team/web", "team/api"]);
  });

  test("counts when the Stack follows, although it is too old for a new follower by then", async () => {
    const { clock, poller, woken } = polled();
    poller.follow("team/web", { ...follow, everyMs: 600_000 }, pending);
    await clock.advance(60_000);
    const seen = poller.latest("team/api", follow);
    await clock.advance(100);
    poller.follow("team/api", follow, seen);
    expect([seen, poller.latest("team/api", follow)]).toEqual([found, found]);
    expect(woken).toEqual(["team/web"]);
  });
});
