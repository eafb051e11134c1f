/** A few thousand inputs for each target, and all inputs of the corpus. `make fuzz` tries more. */
import { expect, test } from "bun:test";

import { supervise } from "./engine/supervise.ts";
import { targets } from "./targets/index.ts";

/** The same for every run, so that one change does not fail because of a mistake that another one made. `make fuzz` has new seeds. */
const seed = Number(process.env["TEST_SEED"] ?? 1);

test("no input breaks what reads it", async () => {
  console.log(`    fuzz: TEST_SEED=${seed}`);
  const results = await supervise({ targets: targets.map(({ name }) => name), seed });
  const found = results.filter(({ findings }) => Object.keys(findings).length > 0);
  expect(found.map(({ target, findings }) => ({ target, findings }))).toEqual([]);
  expect(results.map(({ target }) => target)).toEqual(targets.map(({ name }) => name));
}, 600_000);
