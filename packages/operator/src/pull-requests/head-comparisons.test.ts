import { expect, test } from "bun:test";
import { manualClock } from "@pko/kube";

import type { ComparedCommits } from "../sources/git-http.ts";
import type { CommitPair } from "../sources/source-view.ts";
import { headComparisons, type WantedHeads } from "./head-comparisons.ts";

const url = "https://git.example/team/web";
const wanted = (from: string, heads: readonly string[], changes: Partial<WantedHeads> = {}): WantedHeads => ({
  remote: { url, credentials: { kind: "none" } },
  from,
  heads,
  pathFilters: ["web/**"],
  ...changes,
});
const at = (other: string): Partial<WantedHeads> => ({ remote: { url: other, credentials: { kind: "none" } } });

/** Each head changes the files of `paths`. Another one changes nothing. */
function opened(paths: Readonly<Record<string, readonly string[]>> = {}) {
  const clock = manualClock();
  const [woken, started]: [string[], string[]] = [[], []];
  const compare = async (_: unknown, { from, to }: CommitPair): Promise<ComparedCommits> => {
    started.push(`${from}..${to}`);
    if (to === "later" && started.length === 1) return { kind: "unreachable", reason: "it does not respond" };
    return to === "lost" ? { kind: "unknown", reason: "it is lost" } : { kind: "compared", paths: paths[to] ?? [] };
  };
  const comparisons = headComparisons({ comparer: { compare }, wake: (key) => woken.push(key), clock });
  const known = (key = "team/web", pathFilters = ["web/**"], repository = url) =>
    Object.fromEntries(comparisons.latest(key, { url: repository, pathFilters }));
  return { clock, comparisons, woken, started, known };
}

test("the Stack is woken when its heads are compared", async () => {
  const { clock, comparisons, woken, known } = opened({ h1: ["docs/a", "web/a"], h2: ["docs/a"] });
  comparisons.follow("team/web", wanted("c0", ["h1", "h2", "lost"]));
  expect(known()).toEqual({});
  await clock.advance(0);
  expect(woken).toEqual(["team/web", "team/web", "team/web"]);
  expect(known()).toEqual({ h1: true, h2: false, lost: true });
});

test("a head is compared again after a moment if the server cannot be reached", async () => {
  const { clock, comparisons, started, known } = opened();
  comparisons.follow("team/web", wanted("c0", ["later"]));
  await clock.advance(0);
  expect(known()).toEqual({});
  comparisons.follow("team/web", wanted("c0", ["later"]));
  await clock.advance(5000);
  expect(known()).toEqual({ later: false });
  expect(started).toEqual(["c0..later", "c0..later"]);
});

test("Stacks with different filters share a comparison", async () => {
  const { clock, comparisons, started, known } = opened({ h1: ["web/a"] });
  comparisons.follow("team/web", wanted("c0", ["h1"]));
  comparisons.follow("team/api", wanted("c0", ["h1"], { pathFilters: ["api/**"] }));
  await clock.advance(0);
  expect(started).toEqual(["c0..h1"]);
  expect([known(), known("team/api", ["api/**"])]).toEqual([{ h1: true }, { h1: false }]);
});

test("a head is compared once, whatever is deployed later; a new head with what is deployed then", async () => {
  const { clock, comparisons, started } = opened();
  comparisons.follow("team/web", wanted("c0", ["h1"]));
  await clock.advance(0);
  comparisons.follow("team/web", wanted("c1", ["h1", "h2"]));
  await clock.advance(0);
  expect(started).toEqual(["c0..h1", "c1..h2"]);
});

test("with other filters, a head is compared again with the same commit, because its paths are not kept", async () => {
  const { clock, comparisons, started, known } = opened({ h1: ["web/a"] });
  comparisons.follow("team/web", wanted("c0", ["h1"]));
  await clock.advance(0);
  const pathFilters = ["api/**"];
  expect(known("team/web", pathFilters)).toEqual({});
  comparisons.follow("team/web", wanted("c1", ["h1"], { pathFilters }));
  await clock.advance(0);
  expect(started).toEqual(["c0..h1", "c0..h1"]);
  expect(known("team/web", pathFilters)).toEqual({ h1: false });
});

test("a head with more paths than can be matched quickly counts as a change", async () => {
  const many = Array.from({ length: 2000 }, (_, index) => `docs/${"a".repeat(995)}${index}`);
  const pathFilters = Array.from({ length: 64 }, () => `**/${"a*".repeat(100)}[b]*`);
  const { clock, comparisons, known } = opened({ h1: many, h2: ["docs/a"] });
  comparisons.follow("team/web", wanted("c0", ["h1", "h2"], { pathFilters }));
  await clock.advance(0);
  expect(known("team/web", pathFilters)).toEqual({ h1: true, h2: false });
});

test("with new credentials, a head that is not known yet is compared with them, and with the same commit", async () => {
  const { clock, comparisons, started } = opened();
  const remote = { url, credentials: { kind: "token", token: "new" } } as const;
  comparisons.follow("team/web", wanted("c0", ["later"]));
  await clock.advance(0);
  comparisons.follow("team/web", wanted("c1", ["later"], { remote }));
  await clock.advance(0);
  expect(started).toEqual(["c0..later", "c0..later"]);
});

test("a head that is closed, or in another repository, is forgotten", async () => {
  const { clock, comparisons, started, known } = opened();
  const elsewhere = "https://git.example/team/other";
  comparisons.follow("team/web", wanted("c0", ["h1", "h2"]));
  await clock.advance(0);
  comparisons.follow("team/web", wanted("c1", ["h1"]));
  expect(known()).toEqual({ h1: false });
  comparisons.follow("team/web", wanted("c1", ["h1"], at(elsewhere)));
  await clock.advance(0);
  expect([known(), known("team/web", ["web/**"], elsewhere)]).toEqual([{}, { h1: false }]);
  comparisons.forget("team/web");
  expect(known("team/web", ["web/**"], elsewhere)).toEqual({});
  comparisons.follow("team/web", wanted("c2", ["h1"]));
  await clock.advance(0);
  expect(started).toEqual(["c0..h1", "c0..h2", "c1..h1", "c2..h1"]);
});
