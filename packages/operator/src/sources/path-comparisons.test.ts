import { describe, expect, test } from "bun:test";
import { manualClock } from "@pko/kube";

import type { ComparedCommits } from "./git-http.ts";
import { pathComparisons, type Comparison } from "./path-comparisons.ts";

const comparison = (to: string, host = "git.example"): Comparison => ({
  url: `https://${host}/team/web`,
  credentials: { kind: "none" },
  from: "c0",
  to,
});
const compared: ComparedCommits = { kind: "compared", paths: ["infra/a"] };

/** Comparisons with a commit that is in `stuck` do not end. */
function opened(stuck: readonly string[] = []) {
  const clock = manualClock();
  const [woken, started]: [string[], string[]] = [[], []];
  const compare = async (_: unknown, { to }: { readonly to: string }): Promise<ComparedCommits> => {
    started.push(to);
    return stuck.includes(to) ? await new Promise<never>(() => undefined) : compared;
  };
  const comparisons = pathComparisons({ comparer: { compare }, wake: (key) => woken.push(key), clock });
  return { clock, comparisons, woken, started };
}

test("Stacks share a comparison, and each of them is woken once", async () => {
  const { clock, comparisons, woken, started } = opened();
  for (const key of ["team/web", "team/api", "team/web"]) comparisons.follow(key, [comparison("c1")]);
  await clock.advance(0);
  expect(comparisons.latest(comparison("c1"))).toEqual(compared);
  for (const key of ["team/web", "team/api"]) comparisons.follow(key, [comparison("c1")]);
  expect([started, woken]).toEqual([["c1"], ["team/web", "team/api"]]);
});

test("a Stack is woken if the comparison ended between its two calls", async () => {
  const { clock, comparisons, woken } = opened();
  comparisons.follow("team/web", [comparison("c1")]);
  expect(comparisons.latest(comparison("c1"))).toBeUndefined();
  await clock.advance(0);
  comparisons.follow("team/api", [comparison("c1")]);
  comparisons.follow("team/api", [comparison("c1")]);
  expect(woken).toEqual(["team/web", "team/api"]);
});

test("a comparison also waits in the line of another namespace that needs it", async () => {
  const slow = ["s1", "s2"];
  const { clock, comparisons, started, woken } = opened(slow);
  for (const to of slow) comparisons.follow(`busy/${to}`, [comparison(to, `${to}.example`)]);
  comparisons.follow("busy/web", [comparison("c1")]);
  await clock.advance(0);
  expect(started).toEqual(slow);
  comparisons.follow("idle/web", [comparison("c1")]);
  await clock.advance(0);
  expect(started).toEqual([...slow, "c1"]);
  expect(woken).toEqual(["busy/web", "idle/web"]);
});

test("a comparison that waits takes no slot of a namespace that no longer needs it", async () => {
  const held = ["i1", "i2", "b1", "b2"];
  const { clock, comparisons, started } = opened(held);
  const follow = (key: string, to: string): void => comparisons.follow(key, [comparison(to, `${to}.example`)]);
  for (const to of ["i1", "i2"]) follow(`idle/${to}`, to);
  await clock.advance(1000);
  for (const to of ["b1", "b2", "b3"]) follow(`busy/${to}`, to);
  follow("idle/web", "b3");
  comparisons.follow("idle/web", []);
  follow("idle/api", "i3");
  await clock.advance(1000);
  expect(started).toEqual(held);
  // Only those of this namespace end.
  await clock.advance(18_000);
  expect(started).toEqual([...held, "i3"]);
});

test("a comparison that does not end in time is repeated with longer pauses, and is unknown in the end", async () => {
  const { clock, comparisons, woken, started } = opened(["c1"]);
  comparisons.follow("team/web", [comparison("c1")]);
  await clock.advance(20_000);
  expect(comparisons.latest(comparison("c1"))).toMatchObject({ kind: "unreachable" });
  expect(woken).toEqual(["team/web"]);
  for (const [attempts, pauseMs] of [5000, 15_000, 45_000, 120_000].entries()) {
    await clock.advance(pauseMs - 1);
    expect(started).toHaveLength(attempts + 1);
    await clock.advance(1);
    expect(started).toHaveLength(attempts + 2);
    expect(woken).toEqual(["team/web"]);
    await clock.advance(20_000);
  }
  expect(comparisons.latest(comparison("c1"))).toMatchObject({ kind: "unknown" });
  expect(woken).toEqual(["team/web", "team/web"]);
  await clock.advance(3_600_000);
  expect(started).toHaveLength(5);
});

test("a repeated comparison that succeeds wakes the Stack, and one that nobody needs is not repeated", async () => {
  const stuck = ["c1", "c2"];
  const { clock, comparisons, woken, started } = opened(stuck);
  comparisons.follow("team/web", [comparison("c1")]);
  comparisons.follow("team/api", [comparison("c2")]);
  await clock.advance(20_000);
  comparisons.follow("team/api", []);
  stuck.length = 0;
  await clock.advance(5000);
  expect(comparisons.latest(comparison("c1"))).toEqual(compared);
  expect(started).toEqual(["c1", "c2", "c1"]);
  expect(woken).toEqual(["team/web", "team/api", "team/web"]);
});

test("one that is woken at once may stop to follow the comparison", async () => {
  const clock = manualClock();
  const keep = "team/keep";
  const comparisons = pathComparisons({
    comparer: { compare: () => Promise.resolve(compared) },
    wake: (key) => key !== keep && comparisons.follow(key, []),
    clock,
  });
  comparisons.follow(keep, [comparison("c1")]);
  await clock.advance(0);
  comparisons.follow("team/web", [comparison("c1")]);
  comparisons.follow(keep, []);
  expect(comparisons.latest(comparison("c1"))).toBeUndefined();
});

test("a Stack can need two comparisons, and each is forgotten when no Stack needs it", async () => {
  const { clock, comparisons, started } = opened();
  comparisons.follow("team/web", [comparison("c1"), comparison("c2")]);
  await clock.advance(0);
  expect([comparison("c1"), comparison("c2")].map((each) => comparisons.latest(each))).toEqual([compared, compared]);
  comparisons.follow("team/web", [comparison("c2")]);
  expect([comparison("c1"), comparison("c2")].map((each) => comparisons.latest(each))).toEqual([undefined, compared]);
  comparisons.follow("team/web", []);
  expect(comparisons.latest(comparison("c2"))).toBeUndefined();
  expect(started).toEqual(["c1", "c2"]);
});

test("the paths of all comparisons together are limited: the agent compares what would take more memory", async () => {
  const clock = manualClock();
  const woken: string[] = [];
  // Of 2 MiB, as few as possible, so that the test does not take their memory.
  const large: ComparedCommits = { kind: "compared", paths: Array.from({ length: 512 }, () => "a".repeat(4096)) };
  const compare = async (_: unknown, { to }: { readonly to: string }): Promise<ComparedCommits> =>
    to === "small" ? compared : large;
  const comparisons = pathComparisons({ comparer: { compare }, wake: (key) => woken.push(key), clock });
  comparisons.follow("team/web", [comparison("small")]);
  const commits = Array.from({ length: 20 }, (_, index) => `large ${index}`);
  for (const to of commits) comparisons.follow(`other/${to}`, [comparison(to, `${to.replace(" ", "-")}.example`)]);
  await clock.advance(0);
  const kinds = commits.map((to) => comparisons.latest(comparison(to, `${to.replace(" ", "-")}.example`))?.kind);
  expect(kinds.filter((kind) => kind === "compared")).toHaveLength(15);
  expect(kinds.filter((kind) => kind === "unknown")).toHaveLength(5);
  expect(comparisons.latest(comparison("small"))).toEqual(compared);
  expect(new Set(woken).size).toBe(21);
  for (const to of commits) comparisons.follow(`other/${to}`, []);
  for (const to of commits.slice(0, 15)) comparisons.follow(`new/${to}`, [comparison(to, "git.example")]);
  await clock.advance(0);
  const later = commits.slice(0, 15).map((to) => comparisons.latest(comparison(to, "git.example"))?.kind);
  expect(later).not.toContain("unknown");
});

describe("a server that responds slowly", () => {
  /** `secondsOf`: how long a server takes, by its host. */
  function served(secondsOf: (host: string) => number) {
    const clock = manualClock();
    const start = clock.monotonic();
    const startedAt: number[] = [];
    const comparedAt = new Map<string, number>();
    const compare = async ({ url }: { readonly url: string }): Promise<ComparedCommits> => {
      startedAt.push(clock.monotonic() - start);
      await new Promise<void>((resolve) => void clock.after(secondsOf(new URL(url).host) * 1000, resolve));
      return compared;
    };
    const wake = (key: string): void => void comparedAt.set(key, clock.monotonic());
    return { clock, startedAt, comparedAt, comparisons: pathComparisons({ comparer: { compare }, wake, clock }) };
  }

  test.each([1, 3, 10])(
    "delays no other namespace, even with 40 of them in each of %d namespaces",
    async (namespaces) => {
      const { clock, comparisons, comparedAt } = served((host) => (host.startsWith("slow") ? 19 : 0.02));
      comparisons.follow("quiet/first", [comparison("first")]);
      await clock.advance(1000);
      for (let index = 0; index < 40 * namespaces; index++)
        comparisons.follow(`hostile${index % namespaces}/s${index}`, [comparison("c1", `slow-${index}.example`)]);
      await clock.advance(1000);
      const waits: number[] = [];
      for (let second = 0; second < 60; second++) {
        const [key, followedAt] = [`quiet/s${second}`, clock.monotonic()];
        comparisons.follow(key, [comparison(`c${second}`)]);
        await clock.advance(1000);
        waits.push((comparedAt.get(key) ?? Infinity) - followedAt);
      }
      expect(Math.max(...waits)).toBeLessThan(200);
    },
  );

  test("and was quick before is compared again with the full time after 5 s", async () => {
    const server = { seconds: 0.02 };
    const { clock, comparisons, startedAt } = served(() => server.seconds);
    comparisons.follow("team/web", [comparison("c1")]);
    await clock.advance(1000);
    server.seconds = 19;
    comparisons.follow("team/web", [comparison("c2")]);
    await clock.advance(5000 + 19_000);
    expect(startedAt).toEqual([0, 1000, 6000]);
    expect(comparisons.latest(comparison("c2"))).toEqual(compared);
  });

  test("does not keep comparisons among the suspects that wait while another one of the server is quick", async () => {
    const { clock, comparisons, comparedAt } = served((host) => (host.startsWith("slow") ? 19 : 0.02));
    for (let index = 0; index < 10; index++) comparisons.follow(`quiet/s${index}`, [comparison(`c${index}`)]);
    for (let index = 0; index < 10; index++)
      comparisons.follow(`hostile${index}/web`, [comparison("c1", `slow-${index}.example`)]);
    await clock.advance(200);
    expect(comparedAt.size).toBe(10);
  });
});
