/** Random tests that can be repeated: each prints its seed, and TEST_SEED sets it. */
import { seededRandom, type SeededRandom } from "../../kube/testing/seeded-random.ts";

export { seededRandom, type SeededRandom };

/** TEST_SEED, or the same for every run, so that one change does not fail because of a mistake that another one made. */
export const testSeed = (what: string): number => readSeed(what, 1);

/** TEST_SEED, or a new one, for what runs for a long time to find new failures. */
export const newSeed = (what: string): number => readSeed(what, Math.floor(Math.random() * 1_000_000));

/** Prints the seed before the test, because a test that fails prints nothing afterwards. */
function readSeed(what: string, otherwise: number): number {
  const given = process.env["TEST_SEED"];
  const seed = given === undefined ? otherwise : Number(given);
  if (!Number.isSafeInteger(seed)) throw new Error(`TEST_SEED=${given} is not an integer`);
  console.log(`    ${what}: TEST_SEED=${seed}`);
  return seed;
}

/**
 * Random numbers for each key. The numbers of a key do not depend on those of others, so the same seed gives the same numbers
 * to concurrent callers in any order.
 */
export function randomForKeys(seed: number): (key: string) => SeededRandom {
  const known = new Map<string, SeededRandom>();
  return (key) => {
    const random = known.get(key) ?? seededRandom(Bun.hash.crc32(`${seed} ${key}`));
    known.set(key, random);
    return random;
  };
}
