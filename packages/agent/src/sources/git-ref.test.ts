import { describe, expect, test } from "bun:test";
import { parseCommit, parseRef } from "./git-ref.ts";

describe("commits and refs", () => {
  for (const commit of ["main", "abc", "-abc", "HEAD", "g".repeat(40), `${"a".repeat(40)} --x`, "a".repeat(41)]) {
    test(`${JSON.stringify(commit)} is not a commit`, () => expect(parseCommit(commit).ok).toBe(false));
  }

  for (const ref of [
    "",
    "-x",
    "--upload-pack=id",
    "a..b",
    "a b",
    "a:b",
    "+a",
    "a^",
    "a~1",
    "refs/heads/*",
    "a?",
    "a[",
    "a\\b",
    "a@{1}",
    "@",
    "a.lock",
    "a/.b",
    "/a",
    "a/",
    "a//b",
    "a.",
    "a\nb",
    "refs/heads/-x",
  ]) {
    const allowed = ref === "+a";
    test(`${JSON.stringify(ref)} is ${allowed ? "a" : "not a"} ref`, () => expect(parseRef(ref).ok).toBe(allowed));
  }

  test("a short name is a branch first, then a tag", () => {
    expect(parseRef("v1.2/x")).toEqual({ ok: true, value: ["refs/heads/v1.2/x", "refs/tags/v1.2/x"] });
    expect(parseRef("refs/tags/v1")).toEqual({ ok: true, value: ["refs/tags/v1"] });
  });
});
