/** Random tests that can be repeated: each prints its seed, and TEST_SEED sets it. */
import { seededRandom, type SeededRandom } from "../../kube/testing/seeded-random.ts";

export { seededRandom, type SeededRandom };

/** TEST_SEED, or a new seed. It is printed before the test, because a test that fails prints nothing afterwards. */
export function testSeed(what: string): number {
  const given = process.env["TEST_SEED"];
  const seed = given === undefined ? Math.floor(Math.random() * 1_000_000) : Number(given);
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
