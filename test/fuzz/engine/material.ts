/** What random changes are made of. */
import type { SeededRandom } from "../../../packages/kube/testing/seeded-random.ts";

export interface Material {
  readonly random: SeededRandom;
  /** At least one. */
  readonly inputs: readonly Uint8Array[];
  readonly words: readonly string[];
}

export function pickFrom<T>(items: readonly T[], random: SeededRandom): T {
  return items[random.below(items.length)] as T;
}

/** Characters that programs treat in a special way: controls, quotes, escapes, spaces, directions. */
export const characters = Array.from(
  "\0\t\n\r\u001B\u007F \"'`\\$%&#*./:;=?@[]{}<>~^-+,!|" +
    "\u0085\u00A0\u00DF\u0130\u200B\u2028\u202E\u2066\uFEFF\uFFFD\u{1F600}",
);

export const numbers = ["0", "-1", "1", "9", "255", "256", "65535", "65536", "2147483648", "4294967296", "1e400"];
