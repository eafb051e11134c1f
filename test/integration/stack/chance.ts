/** Random choices that a seed repeats. */
import { seededRandom } from "@pko/testkit";

export class Chance {
  readonly random: () => number;

  constructor(seed: number) {
    this.random = seededRandom(seed).next;
  }

  of<T>(values: readonly T[]): T {
    return values[Math.floor(this.random() * values.length)] as T;
  }

  is(probability: number): boolean {
    return this.random() < probability;
  }
}
