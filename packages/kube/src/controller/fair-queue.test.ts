import { expect, test } from "bun:test";
import { fairQueue, type FairQueue } from "./fair-queue.ts";
import { testSeed } from "../../testing/seed.ts";
import { seededRandom } from "../../testing/seeded-random.ts";

function drain(queue: FairQueue): string[] {
  const keys: string[] = [];
  for (let key = queue.shift(); key !== undefined; key = queue.shift()) keys.push(key);
  return keys;
}

test("namespaces take turns, and each namespace's keys come out in order", () => {
  const queue = fairQueue();
  for (const key of ["a/1", "a/2", "a/3", "b/1", "b/2", "cluster-wide", "c/1"]) queue.push(key);
  expect(drain(queue)).toEqual(["a/1", "b/1", "cluster-wide", "c/1", "a/2", "b/2", "a/3"]);
  expect(queue.size).toBe(0);
});

test("a key is queued once", () => {
  const queue = fairQueue();
  expect([queue.push("a/1"), queue.push("a/1"), queue.size]).toEqual([true, false, 1]);
  expect([queue.shift(), queue.shift(), queue.push("a/1")]).toEqual(["a/1", undefined, true]);
});

test("a tenant with one key waits one turn behind a tenant with a thousand", () => {
  const queue = fairQueue();
  for (let i = 0; i < 1000; i++) queue.push(`big/${i}`);
  queue.shift();
  queue.push("small/1");
  expect([queue.shift(), queue.shift()]).toEqual(["big/1", "small/1"]);
});

test("a namespace that is queued again gets its turn after those that waited", () => {
  const queue = fairQueue();
  for (const key of ["a/1", "b/1", "c/1"]) queue.push(key);
  expect(queue.shift()).toBe("a/1");
  queue.push("a/2");
  expect(drain(queue)).toEqual(["b/1", "c/1", "a/2"]);
});

const firstSeed = testSeed("fair queue");

for (let seed = firstSeed; seed < firstSeed + 50; seed++) {
  test(`no key waits longer than its position times the namespaces, and none is lost (TEST_SEED=${seed})`, () => {
    const random = seededRandom(seed);
    const namespaces = 1 + random.below(8);
    const queue = fairQueue();
    const waiting = new Map<string, { place: number; turns: number }>();
    const inLine = new Map<string, number>();
    let pushed = 0;

    for (let step = 0; step < 2000; step++) {
      if (random.next() < 0.55) {
        // Squared, so that the first namespaces have far more keys than the last.
        const namespace = String(Math.floor(random.next() ** 2 * namespaces));
        const key = `${namespace}/${random.below(300)}`;
        const place = (inLine.get(namespace) ?? 0) + 1;
        expect(queue.push(key)).toBe(!waiting.has(key));
        if (waiting.has(key)) continue;
        waiting.set(key, { place, turns: 0 });
        inLine.set(namespace, place);
        pushed++;
      } else if (queue.size > 0) {
        const key = queue.shift() ?? "";
        const entry = waiting.get(key);
        if (!entry) throw new Error(`${key} came out but was never pushed`);
        expect(entry.turns).toBeLessThan(entry.place * namespaces);
        waiting.delete(key);
        const [namespace = ""] = key.split("/");
        inLine.set(namespace, (inLine.get(namespace) ?? 0) - 1);
        for (const other of waiting.values()) other.turns++;
      }
    }
    expect(new Set(drain(queue))).toEqual(new Set(waiting.keys()));
    expect(pushed).toBeGreaterThan(100);
  });
}
