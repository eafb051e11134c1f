import { expect, test } from "bun:test";

import { parseRefs } from "./git-remote.ts";

test("an annotated tag is resolved to its commit", () => {
  const [tag, commit] = ["a".repeat(40), "b".repeat(40)];
  expect([...parseRefs(`${tag}\trefs/tags/v1\n${commit}\trefs/tags/v1^{}\nnonsense\n\n`)]).toEqual([
    ["refs/tags/v1", commit],
  ]);
});
