/** Random tests that can be repeated. */
import { newSeed, testSeed } from "../../kube/testing/seed.ts";
import { seededRandom, type SeededRandom } from "../../kube/testing/seeded-random.ts";

export { newSeed, seededRandom, testSeed, type SeededRandom };

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
