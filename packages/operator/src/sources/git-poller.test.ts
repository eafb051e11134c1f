import { describe, expect, test } from "bun:test";
import { manualClock, metricsRegistry } from "@pko/kube";

import { inProcess, type RefLister, type Transport } from "./git-lister.ts";
import { hostOf, type GitRemote } from "./git-remote.ts";
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

test("reports each commit that it finds for a Stack, with the time of the poll", async () => {
  const clock = manualClock();
  const found: unknown[] = [];
  let commit = "c1";
  const list = async () => ({ kind: "listed", commits: new Map([["refs/heads/main", commit]]) }) as const;
  const onFound = (key: string, poll: object) => found.push({ key, ...poll });
  const poller = gitPoller({ lister: inProcess(list), wake: () => undefined, clock, random: () => 0, onFound });
  const start = clock.now();
  poller.follow("team/web", follow, pending);
  await clock.advance(60_000);
  commit = "c2";
  await clock.advance(120_000);
  poller.stop();
  expect(found).toEqual([
    { key: "team/web", startMs: start + 50, host: "git.example", commit: "c1" },
    { key: "team/web", startMs: start + 60_050, host: "git.example", commit: "c2" },
  ]);
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
  const foundCommit = { kind: "found", commit: "c1" } as const;

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
    expect(poller.latest("team/api", follow)).toEqual(foundCommit);
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
    expect(poller.latest("team/web", requested)).toEqual(foundCommit);
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
    expect([seen, poller.latest("team/api", follow)]).toEqual([foundCommit, foundCommit]);
    expect(woken).toEqual(["team/web"]);
  });
});

type Listing = (remote: GitRemote, request: Parameters<RefLister["list"]>[1]) => ReturnType<RefLister["list"]>;

const found = { kind: "listed", commits: new Map([["refs/heads/main", "c1"]]) } as const;
const down = { kind: "failed", problem: "unreachable", message: "it is down" } as const;
const never = (): Promise<never> => new Promise(() => undefined);

interface Listed {
  readonly url: string;
  readonly transport: Transport;
  readonly at: number;
}

function polling(list: Listing, random: () => number = () => 0) {
  const clock = manualClock();
  const start = clock.monotonic();
  const metrics = metricsRegistry();
  const woken: string[] = [];
  const polls: Listed[] = [];
  const needGit = new Set<string>();
  const lister: RefLister = {
    transportFor: ({ url }) => (needGit.has(url) || url.startsWith("ssh:") ? "git" : "http"),
    async list(remote, request) {
      polls.push({ url: remote.url, transport: request.transport, at: clock.monotonic() - start });
      const result = await list(remote, request);
      if (result.kind === "needsGit") needGit.add(remote.url);
      return result;
    },
  };
  const poller = gitPoller({ lister, wake: (key) => woken.push(key), clock, random, metrics });
  const add = (key: string, changes: Partial<GitFollow> = {}): void => {
    const wanted = { ...follow, url: `https://git.example/${key}`, ...changes };
    poller.follow(key, wanted, poller.latest(key, wanted));
  };
  const latest = (key: string) => poller.latest(key, { ...follow, url: `https://git.example/${key}` });
  return { clock, poller, polls, woken, add, latest, exposed: () => metrics.expose() };
}

test("a repository that only git can read is read by a git process in the same poll", async () => {
  const { clock, polls, add, latest } = polling(async (_, { transport }) =>
    transport === "http" ? { kind: "needsGit" } : found,
  );
  add("team/web");
  await clock.advance(100);
  expect(latest("team/web")).toEqual({ kind: "found", commit: "c1" });
  await clock.advance(60_000);
  expect(polls.map(({ transport }) => transport)).toEqual(["http", "git", "git"]);
});

test("few git processes run at the same time, and no namespace has all of them", async () => {
  const { clock, polls, add } = polling(async (_, { transport }) =>
    transport === "http" ? { kind: "needsGit" } : await never(),
  );
  for (let index = 0; index < 20; index++) add(`noisy/s${index}`, { url: `https://h${index}.example/` });
  await clock.advance(100);
  add("quiet/web");
  await clock.advance(100);
  const processes = polls.filter(({ transport }) => transport === "git").map(({ url }) => new URL(url).host);
  expect(processes).toEqual(["h0.example", "h1.example", "git.example"]);
});

describe("git processes for the servers of hostile namespaces", () => {
  /** How long a server takes to respond, by its host: `Infinity` if it never does. */
  function served(secondsOf: (host: string, second: number) => number) {
    let drawn = 0;
    const scene = polling(
      async ({ url }) => {
        const ms = secondsOf(hostOf(url), scene.clock.monotonic() / 1000 - startSeconds) * 1000;
        if (ms === Infinity) return await never();
        await new Promise<void>((resolve) => void scene.clock.after(ms, resolve));
        return found;
      },
      () => ((drawn++ * 37) % 100) / 100,
    );
    const startSeconds = scene.clock.monotonic() / 1000;
    const requestAll = (namespaces: number, servers: number, request: string): void => {
      for (let index = 0; index < servers; index++)
        scene.add(`hostile${index % namespaces}/s${index}`, { url: `ssh://h${index}.example/repository`, request });
    };
    const addQuiet = (): void => {
      for (let index = 0; index < 100; index++) scene.add(`quiet/s${index}`, { url: `ssh://git.example/s${index}` });
    };
    /** The longest time between two polls of a repository. */
    const longestPause = (): number => {
      const startsOf = Map.groupBy(
        scene.polls.filter(({ url }) => url.startsWith("ssh://git.example/")),
        ({ url }) => url,
      );
      const pauses = startsOf
        .values()
        .flatMap((starts) => starts.slice(1).map(({ at }, n) => at - (starts[n]?.at ?? 0)));
      expect(startsOf.size).toBe(100);
      return Math.max(...pauses) / 1000;
    };
    return { ...scene, addQuiet, requestAll, longestPause };
  }

  const quickly = 1;
  /** Only the server of the quiet namespace always responds quickly. */
  const beside = (seconds: (second: number) => number) =>
    served((host, second) => (host === "git.example" ? quickly : seconds(second)));
  const hostile: readonly (readonly [string, number, number, (second: number) => number])[] = [
    ["that respond quickly", 1, 65, () => quickly],
    ["that do not respond", 2, 65, () => Infinity],
    ["that do not respond", 10, 65, () => Infinity],
    ["that respond after 29 s", 2, 65, () => 29],
    ["that respond after 29 s", 10, 65, () => 29],
    ["that respond at first, and not later", 2, 65, (second) => (second < 120 ? quickly : Infinity)],
    ["that respond every other minute", 2, 65, (second) => (second % 120 < 60 ? quickly : Infinity)],
    // Each of the 40 holds a process for 5 s, once a minute at most.
    ["that respond every other minute", 10, 95, (second) => (second % 120 < 60 ? quickly : Infinity)],
    // Two processes are left, and 100 polls a minute need most of their time.
    ["that respond after 4.9 s", 2, 75, () => 4.9],
  ];
  for (const [servers, count, limit, seconds] of hostile) {
    test(`${servers}, in ${count} namespaces with a request every 30 s, leave others an interval below ${limit} s`, async () => {
      const { clock, addQuiet, requestAll, longestPause } = beside(seconds);
      addQuiet();
      await clock.advance(60_000);
      for (let round = 0; round < 20; round++) {
        requestAll(count, 40, `${round}`);
        await clock.advance(30_000);
      }
      // 60 s, at most 5 % more at random, and the wait for other polls of the same namespace.
      expect(longestPause()).toBeLessThan(limit);
    });
  }

  test("that never respond, of which 400 are new, delay no others after a restart", async () => {
    const { clock, addQuiet, requestAll, longestPause, polls } = beside(() => Infinity);
    requestAll(2, 400, "1");
    await clock.advance(100);
    addQuiet();
    await clock.advance(100);
    expect(polls.at(-1)?.url).toBe("ssh://git.example/s0");
    await clock.advance(600_000);
    expect(longestPause()).toBeLessThan(65);
  });

  test("in many namespaces delay the first poll of another one by its turn, and no later poll", async () => {
    const { clock, addQuiet, requestAll, longestPause, polls } = beside(() => Infinity);
    requestAll(20, 400, "1");
    await clock.advance(100);
    addQuiet();
    await clock.advance(600_000);
    const first = polls.find(({ url }) => url === "ssh://git.example/s0");
    // Five of the 20 namespaces at a time, 30 s for each, and the 30 s of those that run already.
    expect(first?.at).toBeLessThanOrEqual((20 / 5 + 1) * 30_000 + 100);
    expect(longestPause()).toBeLessThan(65);
  });
});

test("a host that only refuses is not trusted: its processes are as few as those of one that does not respond", async () => {
  const { clock, polls, add } = polling(async ({ url }) =>
    url.endsWith("/refused") ? { kind: "failed", problem: "auth", message: "there is no SSH key" } : await never(),
  );
  add("team/refused", { url: "ssh://git.example/refused" });
  await clock.advance(100);
  for (let index = 0; index < 5; index++) add(`team/s${index}`, { url: `ssh://git.example/s${index}` });
  await clock.advance(100);
  expect(polls.filter(({ url }) => !url.endsWith("/refused"))).toHaveLength(2);
});

test("a poll that waits takes no slot of a namespace whose Stacks have stopped following the repository", async () => {
  const { clock, poller, polls, add } = polling(never);
  for (const [namespace, count] of [
    ["one", 2],
    ["two", 1],
    ["noisy", 10],
  ] as const)
    for (let index = 0; index < count; index++)
      add(`${namespace}/s${index}`, { url: `ssh://${namespace}${index}.example/` });
  await clock.advance(100);
  const shared = ["shared0", "shared1"];
  for (const namespace of ["noisy", "quiet"])
    for (const name of shared) add(`${namespace}/${name}`, { url: `ssh://${name}.example/` });
  await clock.advance(100);
  for (const name of shared) poller.forget(`quiet/${name}`);
  for (const name of ["own0", "own1"]) add(`quiet/${name}`, { url: `ssh://${name}.example/` });
  await clock.advance(100);
  polls.length = 0;
  // The processes that hold all slots of suspects end, and the next ones start.
  await clock.advance(30_000);
  const started = polls.map(({ url }) => hostOf(url));
  expect(started).toContain("own0.example");
  expect(started).toContain("own1.example");
});

describe("a git process of a server that was quick", () => {
  async function slowedDown() {
    const waits = { ms: 100 };
    const scene = polling(async ({ url }) => {
      await new Promise<void>((resolve) => void scene.clock.after(url.endsWith("/slow") ? waits.ms : 100, resolve));
      return found;
    });
    const add = (name: string, request = "1"): void =>
      scene.add(`team/${name}`, { url: `ssh://git.example/${name}`, request });
    const latest = (name: string) =>
      scene.poller.latest(`team/${name}`, { ...follow, url: `ssh://git.example/${name}`, request: "2" });
    add("slow");
    await scene.clock.advance(200);
    scene.polls.length = 0;
    return { ...scene, add, latest, waits };
  }

  test("is ended after 5 s and repeated once with the full time, and the request is still answered", async () => {
    const { clock, add, latest, waits, polls } = await slowedDown();
    waits.ms = 29_000;
    add("slow", "2");
    await clock.advance(34_000);
    expect([polls.map(({ at }) => at - 200), latest("slow")]).toEqual([[50, 5050], pending]);
    await clock.advance(100);
    expect(latest("slow")).toEqual({ kind: "found", commit: "c1" });
  });

  test("has the full time while other repositories of the server are read quickly", async () => {
    const { clock, add, latest, waits } = await slowedDown();
    waits.ms = 6000;
    add("slow", "2");
    for (let second = 0; second < 12; second++) {
      add("quick", `${second}`);
      await clock.advance(1000);
    }
    expect(latest("slow")).toEqual({ kind: "found", commit: "c1" });
  });

  test("is not repeated from the second slow poll on, until it is quick again", async () => {
    const { clock, waits, polls } = await slowedDown();
    waits.ms = 6000;
    await clock.advance(70_000);
    polls.length = 0;
    await clock.advance(120_000);
    expect(polls).toHaveLength(2);
    waits.ms = 100;
    await clock.advance(60_000);
    waits.ms = 6000;
    polls.length = 0;
    await clock.advance(65_000);
    expect(polls).toHaveLength(2);
  });
});

test("repositories that are first polled together are spread over the interval, and none waits longer", async () => {
  let drawn = 0;
  const { clock, polls, add } = polling(
    async () => found,
    () => (drawn++ % 100) / 100,
  );
  for (let index = 0; index < 100; index++) add(`team/s${index}`);
  await clock.advance(61_000);
  expect(polls.filter(({ at }) => at === 50)).toHaveLength(100);
  const second = polls.filter(({ at }) => at > 50).map(({ at }) => Math.floor(at / 6000));
  const perTenth = Array.from({ length: 10 }, (_, tenth) => second.filter((each) => each === tenth).length);
  // Nothing in the first tenth, and about the same number in each other one.
  expect([perTenth[0], second.length]).toEqual([0, 100]);
  for (const count of perTenth.slice(1)) expect(count).toBeWithin(8, 15);
});

const limits: readonly (readonly [Transport, number])[] = [
  ["http", 20_000],
  ["git", 30_000],
];
test.each(limits)("a poll over %s ends after %d ms, whatever the lister does", async (transport, limitMs) => {
  let isAborted = false;
  const { clock, woken, add, latest } = polling(async (_, request) => {
    if (request.transport !== transport) return { kind: "needsGit" };
    request.signal.addEventListener("abort", () => (isAborted = true));
    return await never();
  });
  add("team/web");
  await clock.advance(50 + limitMs - 1);
  expect([isAborted, woken]).toEqual([false, []]);
  await clock.advance(1);
  expect([isAborted, woken]).toEqual([true, ["team/web"]]);
  expect(latest("team/web")).toEqual({
    kind: "failed",
    problem: "unreachable",
    message: "the repository did not respond in time",
  });
});

test("a server that does not respond is tested less and less often, until it responds", async () => {
  let isDown = true;
  const { clock, polls, add, latest } = polling(async () => (isDown ? down : found));
  add("team/web");
  await clock.advance(30 * 60_000);
  const pauses = polls.slice(1).map(({ at }, index) => at - (polls[index]?.at ?? 0));
  expect(pauses.slice(0, 6)).toEqual([60_000, 60_000, 60_000, 120_000, 240_000, 300_000]);
  isDown = false;
  await clock.advance(300_000);
  expect(latest("team/web")).toEqual({ kind: "found", commit: "c1" });
  polls.length = 0;
  await clock.advance(600_000);
  expect(polls.length).toBeWithin(9, 12);
});

test("a repository that cannot be read is polled every five minutes in the end, however long its interval is", async () => {
  const denied = { kind: "failed", problem: "auth", message: "the Git server rejects the credentials" } as const;
  const { clock, polls, add } = polling(async () => denied);
  add("team/web", { everyMs: 24 * 3_600_000 });
  await clock.advance(2 * 3_600_000);
  const pauses = polls.slice(1).map(({ at }, index) => at - (polls[index]?.at ?? 0));
  expect(pauses.slice(0, 6)).toEqual([60_000, 120_000, 180_000, 240_000, 300_000, 300_000]);
  expect(Math.max(...pauses)).toBe(300_000);
});

test("a repository that cannot be read is polled again before its long interval ends", async () => {
  let isMissing = true;
  const missing = { kind: "failed", problem: "notFound", message: "there is no such repository" } as const;
  const { clock, polls, add, latest } = polling(async () => (isMissing ? missing : found));
  add("team/web", { everyMs: 3_600_000 });
  await clock.advance(10 * 60_000);
  const pauses = polls.slice(1).map(({ at }, index) => at - (polls[index]?.at ?? 0));
  expect(pauses.slice(0, 3)).toEqual([60_000, 120_000, 180_000]);
  isMissing = false;
  await clock.advance(5 * 60_000);
  expect(latest("team/web")).toEqual({ kind: "found", commit: "c1" });
});

test("a server that limits the rate is left alone by all Stacks of the namespace, and not by others", async () => {
  let isLimited = false;
  const limited = { ...down, retryAfterMs: 300_000 };
  const { clock, polls, add, latest } = polling(async ({ url }) =>
    isLimited && url.includes("/team/") ? limited : found,
  );
  for (const key of ["team/a", "team/b", "team/c", "other/a"]) add(key);
  await clock.advance(1000);
  isLimited = true;
  polls.length = 0;
  await clock.advance(240_000);
  const of = (namespace: string): number => polls.filter(({ url }) => url.includes(`/${namespace}/`)).length;
  expect(of("team")).toBeWithin(1, 4);
  expect(of("other")).toBe(4);
  // A repository that was read before is not reported as unreachable.
  expect(latest("team/a")).toEqual({ kind: "found", commit: "c1" });
});

describe("while a server rests", () => {
  async function resting() {
    const scene = polling(async () => down);
    scene.add("team/web");
    await scene.clock.advance(100);
    await scene.clock.advance(60_000);
    scene.polls.length = 0;
    return scene;
  }

  test("a new Stack gets the failure of the server at once, without a poll", async () => {
    const { clock, polls, add, latest, woken } = await resting();
    woken.length = 0;
    add("team/new");
    await clock.advance(100);
    expect(latest("team/new")).toEqual(down);
    expect([polls, woken]).toEqual([[], ["team/new"]]);
  });

  test("a poll that a user requests starts at once", async () => {
    const { clock, polls, add } = await resting();
    add("team/web", { request: "2" });
    await clock.advance(100);
    expect(polls).toHaveLength(1);
  });

  test("a Stack of another namespace is polled", async () => {
    const { clock, polls, add } = await resting();
    add("other/web");
    await clock.advance(100);
    expect(polls).toHaveLength(1);
  });
});

test("a requested poll does not wait for polls that test the server", async () => {
  let isFirst = true;
  const { clock, polls, add } = polling(async () => {
    if (!isFirst) return await never();
    isFirst = false;
    return down;
  });
  add("team/a");
  await clock.advance(100);
  for (const key of ["team/b", "team/c", "team/d", "team/e"]) add(key);
  await clock.advance(100);
  expect(polls).toHaveLength(3);
  add("team/e", { request: "2" });
  await clock.advance(100);
  expect(polls.slice(3).map(({ url }) => url)).toEqual(["https://git.example/team/e"]);
});

test("a Stack does not wait in the line of another namespace for a repository that both follow", async () => {
  const { clock, polls, add } = polling(never);
  for (let index = 0; index < 100; index++) add(`noisy/s${index}`, { url: `https://h${index}.example/` });
  add("noisy/shared", { url: "https://shared.example/" });
  await clock.advance(100);
  expect(polls).toHaveLength(24);
  add("quiet/web", { url: "https://shared.example/" });
  await clock.advance(100);
  expect(polls.slice(24).map(({ url }) => url)).toEqual(["https://shared.example/"]);
});

test("a repository that is forgotten while its poll waits or runs is not polled again", async () => {
  let end = (): void => undefined;
  const { clock, poller, polls, add, woken, exposed } = polling(
    () => new Promise((resolve) => (end = () => resolve({ kind: "needsGit" }))),
  );
  for (let index = 0; index < 17; index++) add(`team/s${index}`);
  await clock.advance(100);
  expect(polls).toHaveLength(16);
  for (let index = 0; index < 17; index++) poller.forget(`team/s${index}`);
  end();
  await clock.advance(600_000);
  expect([polls.length, woken, clock.pending]).toEqual([16, [], 0]);
  expect(exposed()).toContain("\ngit_polls_waiting 0\n");
});

test("metrics count polls by host and result, with a limited number of hosts", async () => {
  const { clock, add, exposed } = polling(async ({ url }) => (url.includes("h1.") ? down : found));
  for (let index = 0; index < 150; index++) add(`n${index}/web`, { url: `https://h${index}.example/` });
  await clock.advance(1000);
  const counts = exposed()
    .split("\n")
    .filter((line) => line.startsWith("git_polls_total"));
  expect(counts).toHaveLength(101);
  expect(counts).toContain('git_polls_total{host="h0.example",result="listed"} 1');
  expect(counts).toContain('git_polls_total{host="h1.example",result="unreachable"} 1');
  expect(counts).toContain('git_polls_total{host="other",result="listed"} 50');
  expect(exposed()).toContain('git_poll_duration_seconds_count{transport="http"} 150');
});

test("metrics show how long a poll has waited", async () => {
  const { clock, add, exposed } = polling(never);
  for (let index = 0; index < 17; index++) add(`team/s${index}`);
  await clock.advance(5050);
  expect(exposed()).toContain('\ngit_polls_in_flight{transport="http"} 16\n');
  expect(exposed()).toContain("\ngit_polls_waiting 1\n");
  expect(exposed()).toContain("\ngit_poll_queue_age_seconds 5\n");
});

describe("a push that a webhook reports", () => {
  function followed(everyMs = 60_000) {
    const clock = manualClock();
    const start = clock.monotonic();
    const [polledAt, woken]: [number[], string[]] = [[], []];
    const state = { commit: "c1", status: "listed" as "listed" | "failed" };
    const lister = inProcess(async () => {
      polledAt.push(clock.monotonic() - start);
      if (state.status === "failed")
        return { kind: "failed", problem: "unreachable", message: "", retryAfterMs: 30_000 };
      return { kind: "listed", commits: new Map([["refs/heads/main", state.commit]]) };
    });
    const poller = gitPoller({ lister, wake: (key) => woken.push(key), clock, random: () => 0 });
    const read = (key: `${string}/${string}`, changes: Partial<GitFollow> = {}): void => {
      const wanted = { ...follow, everyMs, ...changes };
      poller.follow(key, wanted, poller.latest(key, wanted));
    };
    const push = (changes: Partial<Parameters<typeof poller.pushed>[0]> = {}): number =>
      poller.pushed({
        namespace: "team",
        repositories: ["git@git.example:Team/web.git"],
        refs: ["refs/heads/main"],
        ...changes,
      });
    /** The Stack has read its first result, and the second poll at a random time is over. */
    const settle = async (): Promise<void> => {
      read("team/web");
      await clock.advance(100);
      read("team/web");
      await clock.advance(65_000);
      polledAt.length = 0;
      woken.length = 0;
    };
    return { clock, polledAt, woken, state, read, push, settle, since: () => clock.monotonic() - start, poller };
  }

  test("is not polled for a webhook about a pull request, which changes no branch that a Stack follows", async () => {
    const { clock, polledAt, push, settle } = followed();
    await settle();
    expect(push({ isPullRequest: true })).toBe(0);
    await clock.advance(1000);
    expect(polledAt).toEqual([]);
  });

  test("is polled at once, and wakes the Stack", async () => {
    const { clock, polledAt, woken, state, push, settle, since, poller } = followed();
    await settle();
    state.commit = "c2";
    const at = since();
    expect(push()).toBe(1);
    await clock.advance(100);
    expect([polledAt, woken]).toEqual([[at + 50], ["team/web"]]);
    poller.stop();
  });

  const unrelated: readonly (readonly [string, object])[] = [
    ["of another namespace", { namespace: "other" }],
    ["of another repository", { repositories: ["https://git.example/team/api"] }],
    ["of another ref", { refs: ["refs/heads/side"] }],
    ["of nothing that is a repository", { repositories: ["nonsense"] }],
  ];
  test.each(unrelated)("changes nothing if it is one %s", async (_, changes) => {
    const { clock, polledAt, push, settle, poller } = followed();
    await settle();
    expect(push(changes)).toBe(0);
    await clock.advance(5000);
    expect(polledAt).toEqual([]);
    poller.stop();
  });

  test("of which many are reported leads to one poll a second", async () => {
    const { clock, polledAt, state, push, settle, poller } = followed();
    await settle();
    for (let round = 0; round < 30; round++) {
      state.commit = `c${round}`;
      for (let repeat = 0; repeat < 100; repeat++) push();
      await clock.advance(100);
    }
    expect(polledAt.length).toBeLessThanOrEqual(4);
    poller.stop();
  });

  test("is polled in time if others follow without a pause", async () => {
    const { clock, polledAt, push, settle, since, poller } = followed();
    await settle();
    const at = since();
    for (let round = 0; round < 10; round++) {
      push();
      await clock.advance(20);
    }
    expect(polledAt).toEqual([at + 50]);
    poller.stop();
  });

  test("does not postpone the first poll of a Stack", async () => {
    const { clock, polledAt, push, read, poller } = followed();
    read("team/web");
    for (let round = 0; round < 10; round++) {
      await clock.advance(20);
      push();
    }
    expect(polledAt).toEqual([50]);
    poller.stop();
  });

  test("during a poll leads to another one", async () => {
    const { clock, polledAt, push, settle, state, poller } = followed();
    await settle();
    push();
    await clock.advance(60);
    state.commit = "c2";
    push();
    await clock.advance(1100);
    expect(polledAt).toHaveLength(2);
    poller.stop();
  });

  test("that the server does not show yet is polled a few times more", async () => {
    const { clock, polledAt, push, settle, poller } = followed(600_000);
    await settle();
    polledAt.length = 0;
    push();
    await clock.advance(120_000);
    const [first = 0] = polledAt;
    expect(polledAt.map((at) => at - first)).toEqual([0, 2000, 12_000, 42_000]);
    poller.stop();
  });

  test("slows polling down, until a change is found that none reported", async () => {
    const { clock, polledAt, state, push, settle, read, poller } = followed();
    await settle();
    state.commit = "c2";
    push();
    await clock.advance(100);
    read("team/web");
    polledAt.length = 0;
    await clock.advance(10 * 60_000);
    expect(polledAt).toHaveLength(2);
    state.commit = "c3";
    await clock.advance(5 * 60_000);
    read("team/web");
    polledAt.length = 0;
    await clock.advance(10 * 60_000);
    expect(polledAt).toHaveLength(10);
    poller.stop();
  });

  test("does not slow polling down if no change is found: it may be an old one that is sent again", async () => {
    const { clock, polledAt, state, push, settle, read, poller } = followed();
    await settle();
    push();
    await clock.advance(60_000);
    polledAt.length = 0;
    await clock.advance(10 * 60_000);
    expect(polledAt.length).toBeGreaterThanOrEqual(9);
    state.commit = "c2";
    await clock.advance(65_000);
    read("team/web");
    polledAt.length = 0;
    await clock.advance(10 * 60_000);
    expect(polledAt.length).toBeGreaterThanOrEqual(9);
    poller.stop();
  });

  test("slows polling down if only a repeated poll finds the change, and the Stack is reconciled before", async () => {
    const { clock, polledAt, state, push, settle, read, poller } = followed();
    await settle();
    push();
    await clock.advance(55);
    read("team/web");
    state.commit = "c2";
    await clock.advance(5000);
    read("team/web");
    polledAt.length = 0;
    await clock.advance(10 * 60_000);
    expect(polledAt).toHaveLength(2);
    poller.stop();
  });

  test("does not slow down Stacks of other refs and namespaces that share the poll", async () => {
    for (const [key, changes] of [
      ["other/web", {}],
      ["team/side", { ref: { kind: "branch", name: "side" } }],
    ] as const) {
      const { clock, polledAt, state, push, settle, read, poller } = followed();
      await settle();
      read(key, changes);
      await clock.advance(100);
      read(key, changes);
      state.commit = "c2";
      push();
      await clock.advance(100);
      polledAt.length = 0;
      await clock.advance(10 * 60_000);
      expect(polledAt.length).toBeGreaterThanOrEqual(9);
      poller.stop();
    }
  });

  test("does not disturb a server that wants to rest", async () => {
    const { clock, polledAt, state, push, settle, poller } = followed();
    await settle();
    state.status = "failed";
    await clock.advance(60_000);
    polledAt.length = 0;
    push();
    await clock.advance(20_000);
    expect(polledAt).toEqual([]);
    poller.stop();
  });
});
