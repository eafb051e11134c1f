/** A few thousand inputs for each target, and all inputs of the corpus. `make fuzz` tries more. */
import { testSeed } from "@pko/testkit";
import { expect, test } from "bun:test";

import { supervise } from "./engine/supervise.ts";
import { targets } from "./targets/index.ts";

test("no input breaks what reads it", async () => {
  const results = await supervise({ targets: targets.map(({ name }) => name), seed: testSeed("fuzz") });
  const found = results.flatMap(({ target, findings }) => Object.entries(findings).map((finding) => [target, ...finding]));
  expect(found).toEqual([]);
  expect(results.map(({ target }) => target)).toEqual(targets.map(({ name }) => name));
}, 600_000);
