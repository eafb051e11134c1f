/** What repositories that fail, hang or are slow do to the others. Time is that of the test's own clock. */
import { describe, expect, test } from "bun:test";
import { manualClock, type Key } from "@pko/kube";

import { inProcess } from "./git-lister.ts";
import { gitPoller, type GitFollow } from "./git-poller.ts";
import type { GitRefs } from "./git-remote.ts";

const follow: Omit<GitFollow, "url"> = {
  credentials: { kind: "none" },
  ref: { kind: "branch", name: "main" },
  everyMs: 60_000,
  request: "1",
};
const listed: GitRefs = { kind: "listed", commits: new Map([["refs/heads/main", "c1"]]) };
const unavailable: GitRefs = { kind: "failed", problem: "unreachable", message: "status 504" };

interface Response {
  readonly afterMs: number;
  readonly result: GitRefs;
}

const quickly: Response = { afterMs: 20, result: listed };
const slowly: Response = { afterMs: 15_000, result: listed };
const never: Response = { afterMs: Infinity, result: listed };

/** `respond` decides by the URL. */
function polling(respond: (url: string, second: number) => Response) {
  const clock = manualClock();
  const start = clock.monotonic();
  const polls: { readonly url: string; readonly at: number }[] = [];
  const waits: number[] = [];
  const requests = new Map<Key, { readonly wanted: GitFollow; readonly at: number }>();
  let drawn = 0;
  const list = async ({ url }: { readonly url: string }): Promise<GitRefs> => {
    const at = clock.monotonic() - start;
    polls.push({ url, at });
    const { afterMs, result } = respond(url, at / 1000);
    if (afterMs === Infinity) return await new Promise(() => undefined);
    await new Promise<void>((resolve) => void clock.after(afterMs, resolve));
    return result;
  };
  const wake = (key: Key): void => {
    const request = requests.get(key);
    if (!request || poller.latest(key, request.wanted).kind === "pending") return;
    waits.push(clock.monotonic() - request.at);
    requests.delete(key);
  };
  const random = (): number => ((drawn++ * 37) % 100) / 100;
  const poller = gitPoller({ lister: inProcess(list), wake, clock, random });
  const add = (key: Key, url: string, request = "1"): void => {
    const wanted = { ...follow, url, request };
    poller.follow(key, wanted, poller.latest(key, wanted));
  };
  /** Each wait for a result is added to `waits`, in milliseconds. */
  const ask = (key: Key, url: string, request: string): void => {
    const wanted = { ...follow, url, request };
    requests.set(key, { wanted, at: clock.monotonic() });
    poller.follow(key, wanted, { kind: "pending" });
  };
  /** The longest time without a poll of a repository, in seconds, from this second until now. */
  const longestPauseSince = (second: number, ...urls: readonly string[]): number => {
    const [from, end] = [second * 1000, { at: clock.monotonic() - start }];
    const pauses = urls.flatMap((url) =>
      [...polls.filter((poll) => poll.url === url && poll.at >= from), end].map(
        ({ at }, n, all) => at - (all[n - 1]?.at ?? from),
      ),
    );
    return Math.max(...pauses) / 1000;
  };
  const longestPause = (...urls: readonly string[]): number => longestPauseSince(0, ...urls);
  return { clock, poller, polls, waits, add, ask, longestPause, longestPauseSince, unanswered: requests };
}

const numbered = (count: number, name: string): string[] =>
  Array.from({ length: count }, (_, index) => `https://git.example/${name}${index}`);

const keyOf = (namespace: string, url: string): Key => `${namespace}/${url.replaceAll(/\W/g, "-")}`;

describe("repositories that fail", () => {
  const [minuteMs, hourMs] = [60_000, 3_600_000];
  /** An interval with 5 % at random, and the time of a poll. */
  const interval = 64;
  const byName = (failing: Response) => (url: string) => (url.includes("bad") ? failing : quickly);

  const failures: readonly (readonly [string, Response])[] = [
    ["after 19 s", { afterMs: 19_000, result: unavailable }],
    ["at once", { afterMs: 20, result: unavailable }],
    ["and name a time", { afterMs: 20, result: { ...unavailable, retryAfterMs: 900_000 } }],
    ["because they never respond", never],
  ];
  const counts = [1, 3, 10].flatMap((bad) => [1, 10].map((good) => ({ good, bad })));
  const cases = failures.flatMap(([how, response]) => counts.map(({ good, bad }) => ({ how, response, good, bad })));
  test.each(cases)("$how, $bad of them, do not delay $good others of the server", async ({ response, good, bad }) => {
    const { clock, add, longestPause } = polling(byName(response));
    const healthy = numbered(good, "good");
    for (const url of healthy) add(keyOf("team", url), url);
    await clock.advance(minuteMs);
    for (const url of numbered(bad, "bad")) add(keyOf("team", url), url);
    await clock.advance(2 * hourMs);
    expect(longestPause(...healthy)).toBeLessThan(interval);
  });

  test("do not delay others of the server while more and more Stacks follow them", async () => {
    const { clock, poller, add, longestPauseSince } = polling((url, second) =>
      url.includes("bad") && second > 60 ? { afterMs: 20, result: unavailable } : quickly,
    );
    const [healthy, failing] = [numbered(1, "good"), numbered(10, "bad")];
    for (const url of [...healthy, ...failing]) add(keyOf("team", url), url);
    // The first failures of repositories that were read count for the healthy one, too.
    await clock.advance(hourMs);
    for (let round = 0; round < 360; round++) {
      add("team/new", failing[round % failing.length] ?? "");
      await clock.advance(10_000);
      poller.forget("team/new");
    }
    expect(longestPauseSince(3600, ...healthy)).toBeLessThan(interval);
  });

  test("do not keep a new Stack of the server from a result for long", async () => {
    const { clock, poller, add } = polling(byName({ afterMs: 19_000, result: unavailable }));
    for (const url of numbered(10, "bad")) add(keyOf("team", url), url);
    await clock.advance(hourMs);
    const [url = ""] = numbered(1, "new");
    add("team/new", url);
    await clock.advance(10 * minuteMs);
    expect(poller.latest("team/new", { ...follow, url })).toEqual({ kind: "found", commit: "c1" });
  });

  test("are polled less and less often themselves", async () => {
    const { clock, polls, add } = polling(byName({ afterMs: 20, result: unavailable }));
    for (const url of [...numbered(10, "bad"), ...numbered(1, "good")]) add(keyOf("team", url), url);
    await clock.advance(hourMs);
    polls.length = 0;
    await clock.advance(hourMs);
    // Each one every five minutes, which the jitter shortens by a fifth.
    expect(polls.filter(({ url }) => url.includes("bad")).length / 10).toBeLessThanOrEqual(15);
  });

  test("together, because their server is down, are polled once for all of them", async () => {
    const isUp = (second: number): boolean => second < 600 || second > 7200;
    const { clock, polls, add, longestPause } = polling((_, second) =>
      isUp(second) ? quickly : { afterMs: 20, result: unavailable },
    );
    const urls = numbered(200, "s");
    for (const url of urls) add(keyOf("team", url), url);
    await clock.advance(600_000);
    polls.length = 0;
    await clock.advance(7200_000 - 600_000);
    // 110 minutes, with a few polls after each rest.
    expect(polls.length).toBeLessThan(100);
    await clock.advance(20 * minuteMs);
    polls.length = 0;
    await clock.advance(10 * minuteMs);
    expect(polls.length / urls.length).toBeWithin(9, 11);
    expect(longestPause(urls[0] ?? "")).toBeLessThan(7200 + 1800);
  });
});

describe("a public repository that two tenants follow", () => {
  const shared = "https://git.example/shared";
  const orders = [
    ["quiet", "noisy"],
    ["noisy", "quiet"],
  ].flatMap((order) => [undefined, 900_000].map((retryAfterMs) => ({ order, retryAfterMs })));
  test.each(orders)("is polled on time if the server fails for one of them: %p", async ({ order, retryAfterMs }) => {
    const failed = { ...unavailable, ...(retryAfterMs !== undefined && { retryAfterMs }) };
    const { clock, add, longestPause } = polling((url) =>
      url.includes("bad") ? { afterMs: 20, result: failed } : quickly,
    );
    for (const namespace of order) add(`${namespace}/web`, shared);
    await clock.advance(5000);
    for (let round = 0; round < 120; round++) {
      for (const url of numbered(10, "bad")) add(keyOf("noisy", url), url, `${round}`);
      await clock.advance(30_000);
    }
    expect(longestPause(shared)).toBeLessThan(64);
  });

  test("rests if the server fails for both", async () => {
    const { clock, polls, add } = polling(() => ({ afterMs: 20, result: unavailable }));
    for (const namespace of ["quiet", "noisy"]) add(`${namespace}/web`, shared);
    await clock.advance(1_800_000);
    polls.length = 0;
    await clock.advance(3_600_000);
    expect(polls.length).toBeLessThanOrEqual(15);
  });

  test("is polled once for 1,000 namespaces", async () => {
    const { clock, polls, add } = polling(() => quickly);
    for (let index = 0; index < 1000; index++) add(`n${index}/web`, shared);
    await clock.advance(30_000);
    polls.length = 0;
    await clock.advance(600_000);
    expect(polls.length).toBeWithin(9, 12);
  });
});

describe("requested polls of a tenant, one each second", () => {
  const own = (key: string): string => `https://git.example/${key}`;

  async function waitsBeside(respond: (url: string) => Response, disturb: Disturb): Promise<readonly number[]> {
    const scene = polling((url) => (url.startsWith(own("quiet/")) ? quickly : respond(url)));
    const keys = Array.from({ length: 60 }, (_, index): Key => `quiet/s${index}`);
    for (const key of keys) scene.ask(key, own(key), "0");
    await scene.clock.advance(5000);
    scene.waits.length = 0;
    // At fixed times, whether or not the ones before have ended.
    for (let second = 0; second < 120; second++) {
      disturb(scene.add, second);
      const key = keys[second % keys.length] ?? "quiet/s0";
      scene.ask(key, own(key), `${second + 1}`);
      await scene.clock.advance(1000);
    }
    await scene.clock.advance(60_000);
    expect([scene.waits.length, scene.unanswered.size]).toEqual([120, 0]);
    return scene.waits;
  }
  type Disturb = (add: (key: Key, url: string) => void, second: number) => void;

  const holes = [1, 2, 4, 8, 40].flatMap((namespaces) => [false, true].map((isRenewed) => ({ namespaces, isRenewed })));
  test.each(holes)("wait for none of 400 servers that never respond: %p", async ({ namespaces, isRenewed }) => {
    const waits = await waitsBeside(
      () => never,
      (add, second) => {
        if (second > 0 && !(isRenewed && second % 20 === 0)) return;
        for (let index = 0; index < 400; index++)
          add(`hostile${index % namespaces}/s${index}`, `https://hole-${second}-${index}.example/r`);
      },
    );
    expect(Math.max(...waits)).toBeLessThan(200);
  });

  test.each([1, 2, 10])(
    "wait for none of 400 slow repositories of %d namespaces on the same host",
    async (namespaces) => {
      const waits = await waitsBeside(
        () => slowly,
        (add, second) => {
          if (second > 0) return;
          for (let index = 0; index < 400; index++)
            add(`noisy${index % namespaces}/s${index}`, `https://git.example/slow${index}`);
        },
      );
      expect(Math.max(...waits)).toBeLessThan(200);
    },
  );
});

describe("a poll that waits while suspects hold all of their slots", () => {
  const [good, bad, waiting] = ["good", "bad", "new"].map((name) => `https://git.example/${name}`) as [
    string,
    string,
    string,
  ];

  function held() {
    const scene = polling((url) => {
      if (url.includes("hole")) return never;
      return url === bad ? { afterMs: 20, result: unavailable } : { afterMs: 500, result: listed };
    });
    const holdAll = async (): Promise<void> => {
      for (let index = 0; index < 400; index++)
        scene.add(`hostile${index % 20}/s${index}`, `https://hole-${index}.example/r`);
      await scene.clock.advance(1000);
    };
    const isPolled = (): boolean => scene.polls.some(({ url }) => url === waiting);
    return { ...scene, holdAll, isPolled };
  }

  test("starts when another repository of the failing server is read", async () => {
    const { clock, add, holdAll, isPolled } = held();
    for (const url of [good, bad]) {
      add(keyOf("quiet", url), url);
      await clock.advance(1000);
    }
    await holdAll();
    add(keyOf("quiet", waiting), waiting);
    await clock.advance(1000);
    expect(isPolled()).toBe(false);
    add(keyOf("quiet", good), good, "2");
    await clock.advance(1000);
    expect(isPolled()).toBe(true);
  });

  test("starts when a repository of the host is read that its namespace follows since the read began", async () => {
    const { clock, add, holdAll, isPolled } = held();
    add(keyOf("other", good), good);
    await clock.advance(1000);
    await holdAll();
    add(keyOf("other", good), good, "2");
    await clock.advance(100);
    for (const url of [good, waiting]) add(keyOf("quiet", url), url);
    await clock.advance(400);
    expect(isPolled()).toBe(false);
    await clock.advance(100);
    expect(isPolled()).toBe(true);
  });
});

test("the first poll of a new host waits for no turn if few servers do not respond", async () => {
  const { clock, add, ask, waits } = polling((url) => (url.includes("hole") ? never : quickly));
  for (let index = 0; index < 60; index++) add(`n${index % 3}/s${index}`, `https://hole-${index}.example/r`);
  await clock.advance(1000);
  for (let index = 0; index < 4; index++) ask(`quiet/s${index}`, `https://new-${index}.example/r`, "1");
  await clock.advance(1000);
  expect(waits).toEqual([70, 70, 70, 70]);
});
