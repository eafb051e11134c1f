/** Seeds of random tests, so that they can be repeated: each is printed, and TEST_SEED sets it. */

/**
 * TEST_SEED, or the same for every run, so that one change does not fail because of a mistake that another one made. A test
 * with several seeds starts at this one and adds one for each of the others.
 */
export const testSeed = (what: string, otherwise = 1): number => readSeed(what, otherwise);

/** TEST_SEED, or a new one, for what runs for a long time to find new failures. */
export const newSeed = (what: string): number => readSeed(what, Math.floor(Math.random() * 1_000_000));

/** Prints the seed before the test, because a test that fails prints nothing afterwards. `make test` collects these lines (`test/runner`). */
function readSeed(what: string, otherwise: number): number {
  const given = process.env["TEST_SEED"];
  const seed = given === undefined ? otherwise : Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`TEST_SEED=${given} is not an integer`);
  console.log(`    ${what}: TEST_SEED=${seed}`);
  return seed;
}
