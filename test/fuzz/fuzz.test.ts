/** A few thousand inputs for each target, and all inputs of the corpus. `make fuzz` tries more. */
import { testSeed } from "@pko/testkit";
import { expect, test } from "bun:test";
import { statSync } from "node:fs";

import { corpusFile, readCorpus } from "./engine/corpus.ts";
import { supervise } from "./engine/supervise.ts";
import { targets } from "./targets/index.ts";

test("no input breaks what reads it", async () => {
  const seed = testSeed("fuzz");
  const results = await supervise({ targets: targets.map(({ name }) => name), seed });
  const found = results.filter(({ findings }) => Object.keys(findings).length > 0);
  expect(found.map(({ target, findings }) => ({ target, findings }))).toEqual([]);
  expect(results.map(({ target }) => target)).toEqual(targets.map(({ name }) => name));
}, 600_000);

test.each(targets.map(({ name }) => name))("the corpus of %s has inputs, and is small", (name) => {
  expect(readCorpus(name).reaching.length).toBeGreaterThan(0);
  expect(statSync(corpusFile(name)).size).toBeLessThan(20_000);
});
