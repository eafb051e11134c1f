import { expect, test } from "bun:test";

import { CommitHashes } from "./commit-hashes.ts";

test("a hash is known for its repository only", () => {
  const hashes = new CommitHashes();
  hashes.remember("a", "abc", "abcdef");
  expect([hashes.find("a", "abc"), hashes.find("a", "abd"), hashes.find("b", "abc")]).toEqual([
    "abcdef",
    undefined,
    undefined,
  ]);
});

test("of more hashes than a list has, those that were used last are kept", () => {
  const hashes = new CommitHashes();
  hashes.remember("a", "first", "1");
  hashes.remember("a", "second", "2");
  for (let count = 0; count < 149; count++) {
    hashes.remember("a", `other ${count}`, "x");
    hashes.find("a", "first");
  }
  expect([hashes.find("a", "first"), hashes.find("a", "second")]).toEqual(["1", undefined]);
});

test("of many repositories, those that were used last are kept", () => {
  const hashes = new CommitHashes();
  hashes.remember("first", "abc", "1");
  hashes.remember("second", "abc", "2");
  for (let count = 0; count < 199; count++) {
    hashes.remember(`other ${count}`, "abc", "x");
    hashes.find("first", "abc");
  }
  expect([hashes.find("first", "abc"), hashes.find("second", "abc")]).toEqual(["1", undefined]);
});
