import { afterEach, describe, expect, test } from "bun:test";
import { manualClock, metricsRegistry, type Key } from "@pko/kube";

import type { Push } from "../shared/channels/pushes.ts";
import { pullRequestPoller, type ForgeFollow, type ForgeList, type ForgeRepository } from "./poller.ts";
import { aPullRequest, commits } from "./testing/views.ts";

const [first, second] = commits;
const atHead = (commit: string): ForgeList => ({
  kind: "listed",
  pullRequests: [aPullRequest(1, { head: { ref: "feature", commit } })],
});
const down: ForgeList = { kind: "failed", problem: "unreachable", message: "it is down" };
const rejected: ForgeList = { kind: "failed", problem: "rejected", message: "no" };
const secret = { name: "forge", values: { token: "t" } };
const repositoryNamed = (name: string): ForgeRepository => ({
  target: { type: "GitHub", url: "https://api.github.com", repository: name },
  host: "api.github.com",
  url: `https://github.com/${name}`,
  secret,
});
const wanted: ForgeFollow = { repository: repositoryNamed("acme/web"), everyMs: 60_000, request: "", previews: [] };
const other: ForgeFollow = { ...wanted, repository: repositoryNamed("acme/other") };

const stops: (() => void)[] = [];
afterEach(() => stops.splice(0).forEach((stop) => stop()));

function setting() {
  const clock = manualClock();
  const metrics = metricsRegistry();
  const start = clock.monotonic();
  /** The repository of each request, and when it was sent. */
  const requests: (readonly [string, number])[] = [];
  /** The previews that each request names. */
  const named: (readonly number[])[] = [];
  const woken: Key[] = [];
  const answers = { next: atHead(first) };
  const poller = pullRequestPoller({
    list: async ({ target }, { previews }) => {
      named.push(previews);
      requests.push([target.repository, clock.monotonic() - start]);
      return answers.next;
    },
    wake: (key) => void woken.push(key),
    clock,
    metrics,
    random: () => 0,
  });
  stops.push(() => poller.stop());
  const follow = (key: Key, follow = wanted): void => poller.follow(key, follow, poller.latest(key, follow));
  return { clock, poller, requests, named, woken, answers, metrics, follow };
}

const push = (changes: Partial<Push> = {}): Push => ({
  namespace: "a",
  repositories: ["https://github.com/acme/web.git"],
  refs: [],
  isPullRequest: true,
  ...changes,
});
const pushTo = (ref: string): Push => {
  const { isPullRequest: _, ...rest } = push({ refs: [ref] });
  return rest;
};

describe("the pull requests of a repository", () => {
  test("are read once for all Stacks of a namespace, at the interval", async () => {
    const { clock, poller, requests, woken, follow } = setting();
    follow("a/one");
    follow("a/two");
    expect(poller.latest("a/one", wanted)).toEqual({ kind: "pending" });
    await clock.advance(60);
    expect(woken).toEqual(["a/one", "a/two"]);
    expect(poller.latest("a/two", wanted)).toEqual(atHead(first));
    await clock.advance(120_000);
    expect(requests.map(([, at]) => at)).toEqual([50, 60_050, 120_050]);
    expect(woken).toHaveLength(2);
  });

  test("are read with the previews of all Stacks, which a truncated list may lack", async () => {
    const { clock, named, follow } = setting();
    follow("a/one", { ...wanted, previews: [1, 2] });
    follow("a/two", { ...wanted, previews: [2, 3] });
    await clock.advance(60);
    expect(named).toEqual([[1, 2, 3]]);
  });

  test("wake their Stacks when they change", async () => {
    const { clock, woken, answers, follow } = setting();
    follow("a/one");
    await clock.advance(60);
    answers.next = atHead(second);
    await clock.advance(60_000);
    expect(woken).toEqual(["a/one", "a/one"]);
  });

  test("are not read for a Stack that does not follow them any longer", async () => {
    const { clock, poller, requests, follow } = setting();
    follow("a/one");
    poller.forget("a/one");
    await clock.advance(60_000);
    expect([requests, poller.latest("a/one", wanted)]).toEqual([[], { kind: "pending" }]);
  });

  test("are read at once when a user requests it", async () => {
    const { clock, requests, follow } = setting();
    follow("a/one");
    await clock.advance(5000);
    follow("a/one", { ...wanted, request: "now" });
    await clock.advance(60);
    expect(requests.map(([, at]) => at)).toEqual([50, 5050]);
  });
});

describe("a webhook", () => {
  test("about a pull request has them read at once, and again until the forge shows a change", async () => {
    const { clock, poller, requests, answers, follow } = setting();
    follow("a/one");
    await clock.advance(5000);
    expect(poller.pushed(push())).toBe(1);
    await clock.advance(4000);
    answers.next = atHead(second);
    await clock.advance(30_000);
    expect(requests.map(([, at]) => at)).toEqual([50, 5050, 7050, 17_050]);
  });

  test("about a push counts if it is to the head of a pull request", async () => {
    const { clock, poller, requests, follow } = setting();
    follow("a/one");
    await clock.advance(5000);
    expect(["refs/heads/main", "refs/heads/feature"].map((ref) => poller.pushed(pushTo(ref)))).toEqual([0, 1]);
    await clock.advance(60);
    expect(requests).toHaveLength(2);
  });

  test("about a push to any ref counts, because it may be to the head of a pull request", async () => {
    const { clock, poller, requests, follow } = setting();
    follow("a/one");
    await clock.advance(5000);
    const { isPullRequest: _, ...toAny } = push();
    expect(poller.pushed(toAny)).toBe(1);
    await clock.advance(60);
    expect(requests).toHaveLength(2);
  });

  test("of another namespace or repository changes nothing", async () => {
    const { clock, poller, requests, follow } = setting();
    follow("a/one");
    await clock.advance(5000);
    const others = [push({ namespace: "b" }), push({ repositories: ["https://github.com/acme/x"] })];
    expect(others.map((each) => poller.pushed(each))).toEqual([0, 0]);
    await clock.advance(5000);
    expect(requests).toHaveLength(1);
  });

  test("causes at most one request a second, however many arrive", async () => {
    const { clock, poller, requests, follow } = setting();
    follow("a/one");
    await clock.advance(5000);
    for (let each = 0; each < 100; each++) {
      poller.pushed(push());
      await clock.advance(50);
    }
    expect(requests.length).toBeLessThanOrEqual(7);
  });
});

describe("a forge that does not respond", () => {
  test("is reported at once to a Stack without a list, and after three attempts to others", async () => {
    const { clock, poller, answers, follow } = setting();
    answers.next = down;
    follow("a/one");
    await clock.advance(60);
    expect(poller.latest("a/one", wanted)).toEqual(down);
    answers.next = atHead(first);
    await clock.advance(60_000);
    expect(poller.latest("a/one", wanted)).toEqual(atHead(first));
    answers.next = down;
    await clock.advance(120_000);
    expect(poller.latest("a/one", wanted)).toEqual(atHead(first));
    await clock.advance(120_000);
    expect(poller.latest("a/one", wanted)).toEqual(down);
  });

  test("is left alone for as long as it wants, also by webhooks and for its other repositories", async () => {
    const { clock, poller, requests, answers, follow } = setting();
    answers.next = { ...down, retryAfterMs: 300_000 };
    follow("a/one");
    await clock.advance(1000);
    follow("a/two", other);
    poller.pushed(push());
    await clock.advance(290_000);
    expect(requests).toEqual([["acme/web", 50]]);
    expect(poller.latest("a/two", other)).toEqual(down);
    answers.next = atHead(first);
    await clock.advance(120_000);
    expect(poller.latest("a/one", wanted)).toEqual(atHead(first));
  });

  const limits: readonly (readonly [string, number, number])[] = [
    ["which may be almost an hour", 50, 50],
    ["but not for more than an hour", 600, 60],
  ];
  test.each(limits)("is left alone until the time that it names, %s", async (_, named, minutes) => {
    const { clock, follow, requests, answers } = setting();
    answers.next = { ...down, retryAfterMs: named * 60_000 };
    follow("a/one");
    await clock.advance(minutes * 60_000 - 1000);
    expect(requests).toHaveLength(1);
    await clock.advance(2000);
    expect(requests).toHaveLength(2);
  });

  test("is reported when it rejects the credentials, even to Stacks with a list", async () => {
    const { clock, poller, answers, follow, metrics } = setting();
    follow("a/one");
    await clock.advance(60);
    answers.next = rejected;
    await clock.advance(60_000);
    expect(poller.latest("a/one", wanted)).toEqual(rejected);
    expect(metrics.expose()).toContain('pull_request_polls_total{result="rejected"} 1');
  });

  test("is given up on after half a minute", async () => {
    const clock = manualClock();
    const poller = pullRequestPoller({ list: () => new Promise(() => {}), wake: () => {}, clock });
    stops.push(() => poller.stop());
    poller.follow("a/one", wanted, { kind: "pending" });
    await clock.advance(30_100);
    expect(poller.latest("a/one", wanted)).toMatchObject({ kind: "failed", problem: "unreachable" });
  });
});

describe("a forge that responds slowly", () => {
  const at = (host: string, name: string): ForgeFollow => ({
    ...wanted,
    repository: { ...repositoryNamed(name), host, url: `https://${host}/${name}` },
  });

  /** `secondsOf`: how long a forge takes, by its host. */
  function served(secondsOf: (host: string) => number) {
    const clock = manualClock();
    const start = clock.monotonic();
    const startedAt: number[] = [];
    const readAt = new Map<Key, number>();
    const poller = pullRequestPoller({
      async list({ host }) {
        startedAt.push(clock.monotonic() - start);
        await new Promise<void>((resolve) => void clock.after(secondsOf(host) * 1000, resolve));
        return atHead(first);
      },
      wake: (key) => void readAt.set(key, clock.monotonic()),
      clock,
      random: () => 0,
    });
    stops.push(() => poller.stop());
    return { clock, poller, startedAt, readAt };
  }

  test.each([1, 4, 10])(
    "delays no other namespace, even with 40 of them in each of %d namespaces",
    async (namespaces) => {
      const { clock, poller, readAt } = served((host) => (host.startsWith("slow") ? 29 : 0.02));
      poller.follow("quiet/first", at("quick.example", "quiet/first"), { kind: "pending" });
      await clock.advance(1000);
      for (let index = 0; index < 40 * namespaces; index++)
        poller.follow(`hostile${index % namespaces}/s${index}`, at(`slow-${index}.example`, "a/b"), {
          kind: "pending",
        });
      await clock.advance(1000);
      const waits: number[] = [];
      for (let second = 0; second < 120; second++) {
        const [key, followedAt]: [Key, number] = [`quiet/s${second}`, clock.monotonic()];
        poller.follow(key, at("quick.example", key), { kind: "pending" });
        await clock.advance(1000);
        waits.push((readAt.get(key) ?? Infinity) - followedAt);
      }
      expect(Math.max(...waits)).toBeLessThan(200);
    },
  );

  test("and was quick before is read again with the full time after 5 s, once", async () => {
    const forge = { seconds: 0.02 };
    const { clock, poller, startedAt } = served(() => forge.seconds);
    const follow = at("git.example", "a/b");
    poller.follow("a/one", follow, { kind: "pending" });
    await clock.advance(1000);
    forge.seconds = 29;
    await clock.advance(160_000);
    expect(startedAt).toEqual([50, 60_050, 65_050, 125_050]);
    expect(poller.latest("a/one", follow)).toEqual(atHead(first));
  });
});
