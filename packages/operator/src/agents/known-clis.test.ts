import { describe, expect, test } from "bun:test";
import { maxKnownClis } from "@pko/rpc";

import { KnownClis } from "./known-clis.ts";

const cli = (name: string, version = "3.259.0") => ({ cli: name, version });

describe("the versions of CLIs", () => {
  test("are known in the namespace whose agents reported them, and in no other", () => {
    const known = new KnownClis();
    known.learn("team", cli("a"));
    expect(known.in("team")).toEqual([cli("a")]);
    expect(known.in("other")).toEqual([]);
  });

  test("are replaced by later reports about the same executable", () => {
    const known = new KnownClis();
    known.learn("team", cli("a", "3.1.0"));
    known.learn("team", cli("b"));
    known.learn("team", cli("a"));
    expect(known.in("team")).toEqual([cli("a"), cli("b")]);
  });

  test("are limited to the last ones", () => {
    const known = new KnownClis();
    for (let index = 0; index <= maxKnownClis; index++) known.learn("team", cli(`cli-${index}`));
    expect(known.in("team")).toHaveLength(maxKnownClis);
    expect(known.in("team")).not.toContainEqual(cli("cli-0"));
  });

  test("are forgotten for the namespace without reports for longest, if there are too many namespaces", () => {
    const known = new KnownClis();
    for (let index = 0; index < 10_000; index++) known.learn(`team-${index}`, cli("a"));
    known.learn("team-0", cli("a"));
    known.learn("another", cli("a"));
    expect(known.in("team-0")).toEqual([cli("a")]);
    expect(known.in("team-1")).toEqual([]);
    expect(known.in("another")).toEqual([cli("a")]);
  });
});
